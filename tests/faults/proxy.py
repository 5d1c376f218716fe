"""An HTTP proxy that injects faults between an S3 client and its server.

It runs in a thread of its own, passes `Host` through so that signatures hold, and serves one request a connection.
"""

from __future__ import annotations

import asyncio
import random
import re
import socket
import struct
import threading
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Self
from urllib.parse import urlsplit

__all__ = ["FaultProxy", "Rule"]

Fault = Literal[
    "503", "500", "403", "404", "409", "expired", "no_bucket",  # answered by us; nothing reaches the server
    "reset_before",  # connection reset; nothing reaches the server
    "reset_after",  # applied by the server, then the connection is reset: a lost answer
    "cut_upload",  # half of what is sent reaches the server, then both connections are reset
    "hang_after",  # applied by the server, and never answered
    "truncate",  # half of the body, then the connection closes
    "corrupt",  # one bit of the body is flipped
    "delay",  # answered rightly after `delay_s`
    "hang",  # never answered; nothing reaches the server
    "error200",  # 200 with an error in the body; nothing reaches the server
]  # fmt: skip
_CODES = {
    "503": ("503 Service Unavailable", "SlowDown"),
    "500": ("500 Internal Server Error", "InternalError"),
    "403": ("403 Forbidden", "AccessDenied"),
    "404": ("404 Not Found", "NoSuchUpload"),
    "409": ("409 Conflict", "ConditionalRequestConflict"),
    "expired": ("400 Bad Request", "ExpiredToken"),
    "no_bucket": ("404 Not Found", "NoSuchBucket"),
    "error200": ("200 OK", "InternalError"),
}


@dataclass(slots=True)
class Rule:
    """Injects `fault` into the next `count` requests (None: all) of a method whose path holds a match of `pattern`.

    The path is as sent: percent-encoded, with its query.  The first `skip` matches pass; `probability` is drawn from a
    generator with a fixed seed.
    """

    fault: Fault
    method: str = ""
    pattern: str = ""
    count: int | None = 1
    skip: int = 0
    probability: float = 1.0
    delay_s: float = 0.2
    after_put: str | None = None
    """If set, the rule takes nothing until a put whose path holds a match of this was answered by the server."""

    def takes(self, method: str, path: str, draw: random.Random) -> bool:
        if self.after_put is not None or self.count == 0:
            return False
        if (self.method and method != self.method) or not re.search(self.pattern, path):
            return False
        if self.skip > 0:
            self.skip -= 1
            return False
        if draw.random() >= self.probability:
            return False
        if self.count is not None:
            self.count -= 1
        return True

    def see_put(self, path: str) -> None:
        """The server's answer to a put was passed on."""
        if self.after_put is not None and re.search(self.after_put, path):
            self.after_put = None


class FaultProxy:
    """Use it in a `with` block; `endpoint_url` is what clients are given, `log` every (method, path, fault or None)."""

    def __init__(self, upstream_url: str, *, seed: int = 0) -> None:
        upstream = urlsplit(upstream_url)
        self._upstream = (upstream.hostname or "", upstream.port or 80)
        self._draw = random.Random(seed)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.rules: list[Rule] = []
        self.log: list[tuple[str, str, Fault | None]] = []
        self.held: list[Fault] = []
        """The faults of requests that are never answered; `hang_after` only once the server has applied its request."""
        self.endpoint_url = ""

    def add(self, fault: Fault, method: str = "", pattern: str = "", **options: float | None) -> Rule:
        """Append a rule; `options` are the other fields of `Rule`."""
        rule = Rule(fault, method, pattern, **options)  # type: ignore[arg-type]
        self.rules.append(rule)
        return rule

    def faults(self, method: str = "") -> list[Fault]:
        """The faults injected so far, of one method or of all."""
        return [fault for seen, _, fault in self.log if fault is not None and (not method or seen == method)]

    def __enter__(self) -> Self:
        self._thread.start()
        starting = asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._server = asyncio.run_coroutine_threadsafe(starting, self._loop).result(10)
        self.endpoint_url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _stop(self) -> None:
        self._server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._answer(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # either side hung up, or `_stop`: what a proxy lives with
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        method, path, _ = head.split(b"\r\n", 1)[0].decode().split(" ", 2)
        fault = next((rule for rule in self.rules if rule.takes(method, path, self._draw)), None)
        self.log.append((method, path, None if fault is None else fault.fault))
        if b"100-continue" in head.lower() and (fault is None or fault.fault != "hang"):
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if fault is not None and fault.fault == "hang":
            self.held.append("hang")
        body = await _body(reader, head)
        kind = None if fault is None else fault.fault
        if kind == "reset_before":
            return _reset(writer)
        if kind == "hang":
            await asyncio.sleep(3600)
        if kind == "cut_upload":
            await self._forward(head, body[: len(body) // 2], is_cut=True)
            return _reset(writer)
        if kind in _CODES:
            writer.write(_error(*_CODES[kind], has_body=method != "HEAD"))
        else:
            answer = await self._forward(head, body)
            if kind == "reset_after":
                return _reset(writer)
            if kind == "hang_after":
                self.held.append(kind)
                await asyncio.sleep(3600)
            if kind == "delay" and fault is not None:
                await asyncio.sleep(fault.delay_s)
            writer.write(_damaged(answer, kind))
            if kind is None and method == "PUT":
                for rule in self.rules:
                    rule.see_put(path)
        await writer.drain()
        return None

    async def _forward(self, head: bytes, body: bytes, *, is_cut: bool = False) -> bytes:
        """The server's whole answer; none where the connection is reset once `body` was sent."""
        lines = head.rstrip(b"\r\n").split(b"\r\n")
        kept = [line for line in lines if not line.lower().startswith((b"connection:", b"expect:"))]
        reader, writer = await asyncio.open_connection(*self._upstream)
        try:
            writer.write(b"\r\n".join([*kept, b"Connection: close", b"", b""]) + body)
            await writer.drain()
            if is_cut:
                _reset(writer)
                return b""
            return await reader.read()
        finally:
            writer.close()


async def _body(reader: asyncio.StreamReader, head: bytes) -> bytes:
    """A request's body as sent, chunks and all."""
    length = re.search(rb"\r\ncontent-length: *(\d+)", head, re.IGNORECASE)
    if length is not None:
        return await reader.readexactly(int(length[1]))
    if not re.search(rb"\r\ntransfer-encoding: *chunked", head, re.IGNORECASE):
        return b""
    body = b""
    while not body.endswith(b"\r\n0\r\n\r\n") and body != b"0\r\n\r\n":
        size = await reader.readuntil(b"\r\n")
        body += size + await reader.readexactly(int(size.split(b";")[0], 16) + 2)
    return body


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close with RST, as a crashed peer or a firewall does, and not with FIN."""
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def _error(status: str, code: str, *, has_body: bool) -> bytes:
    body = f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code><Message>injected</Message></Error>'
    lines = [f"HTTP/1.1 {status}", "Content-Type: application/xml", f"Content-Length: {len(body)}", "Connection: close"]
    return ("\r\n".join(lines) + "\r\n\r\n" + (body if has_body else "")).encode()


def _damaged(answer: bytes, kind: Fault | None) -> bytes:
    head, separator, body = answer.partition(b"\r\n\r\n")
    if kind == "truncate":
        return head + separator + body[: len(body) // 2]
    if kind == "corrupt" and body:
        middle = len(body) // 2
        return head + separator + body[:middle] + bytes([body[middle] ^ 0x10]) + body[middle + 1 :]
    return answer
