"""What `make demo` runs: one job, end to end, on this machine.

Owns the stage only: a server, documents, a model, a job spec.  The job itself is `recordmill run`, as a user starts it.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.text import Text

import pipeline
from demo.documents import RECEIPT_SCHEMA, Labelled, parquet_files, receipts, troublesome
from demo.models import default_cache
from demo.s3 import S3Server
from demo.show import show_records, show_scores

_CHECKOUT = Path(__file__).resolve().parents[1]
_BUCKET = "demo"
_ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "TOKENIZERS_PARALLELISM": "false",
    "TQDM_DISABLE": "1",
    "VLLM_NO_USAGE_STATS": "1",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demonstration; the exit code is that of the job."""
    parser = argparse.ArgumentParser(prog="python -m demo", description=main.__doc__)
    parser.add_argument("--count", type=int, default=200, help="receipts to read (default 200)")
    parser.add_argument("--seed", type=int, default=0, help="of the receipts (default 0)")
    chosen = parser.parse_args(arguments)
    os.environ.update(_ENVIRONMENT)
    console, started = Console(), time.monotonic()
    run_name = f"receipts-{dt.datetime.now(dt.UTC):%Y%m%d-%H%M%S}"
    kept = _CHECKOUT / ".cache" / "demo" / run_name
    kept.mkdir(parents=True)

    _say(console, "SmolLM2-135M-Instruct, converted from a wheel the first time (20 s)")
    model = _model(kept / "model.log")
    _say(console, "an S3 server, SeaweedFS, on this machine")
    with S3Server() as server:
        os.environ.update(server.environment())
        documents = [*receipts(chosen.count, chosen.seed), *troublesome(chosen.seed)]
        _put_documents(server, documents)
        output = f"s3://{_BUCKET}/runs/{run_name}/"
        job = kept / "job.yaml"
        job.write_text(yaml.safe_dump(_job(server, model, output), sort_keys=False, allow_unicode=True))
        _say(console, f"{len(documents)} documents, among them null, empty, overlong and hostile ones")
        code = _run(console, job)
        if code == 0:
            outcomes = pipeline.read_records(output, None).to_table()
            show_records(console, outcomes, documents)
            show_scores(console, outcomes, documents)
        report = _keep_report(server, run_name, kept)
    minutes, seconds = divmod(round(time.monotonic() - started), 60)
    _say(console, f"exit code {code}, {minutes} min {seconds} s, report: {report if report is not None else 'none'}")
    return code


def _say(console: Console, text: str) -> None:
    console.print(Text.assemble(("▸ ", "bold blue"), text), soft_wrap=True)


def _model(log_path: Path) -> Path:
    """The model's folder; made by another process, so that this one never loads torch."""
    with log_path.open("wb") as log:
        made = subprocess.run(
            [sys.executable, "-m", "demo.models", "smollm2", "--cache", str(default_cache())],
            cwd=_CHECKOUT,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            check=False,
        )
    if made.returncode:
        sys.exit(f"the model could not be converted:\n{log_path.read_text()[-2000:]}")
    log_path.unlink()
    return Path(made.stdout.splitlines()[-1])


def _put_documents(server: S3Server, documents: Sequence[Labelled]) -> None:
    server.bucket(_BUCKET)
    client = server.client()
    for number, data in enumerate(parquet_files(documents, RECEIPT_SCHEMA)):
        client.put_object(Bucket=_BUCKET, Key=f"receipts/receipts-{number:02d}.parquet", Body=data)


def _job(server: S3Server, model: Path, output: str) -> dict[str, Any]:
    """`jobs/receipts.yaml` with this run's places in it."""
    job: dict[str, Any] = yaml.safe_load((_CHECKOUT / "jobs" / "receipts.yaml").read_text())
    job["input"]["uri"] = f"s3://{_BUCKET}/receipts/"
    job["output"]["uri"] = output
    job["model"]["name"] = str(model)
    job["cluster"]["cpus_per_engine"] = os.cpu_count() or 1
    job["s3"] = {"endpoint_url": server.endpoint_url, "region": server.environment()["AWS_DEFAULT_REGION"]}
    return job


def _run(console: Console, job: Path) -> int:
    """`recordmill run`, its output let through."""
    command = ["recordmill", "run", str(job.relative_to(_CHECKOUT))]
    _say(console, f"$ {' '.join(command)}\n")
    sys.stdout.flush()
    command[0] = str(Path(sys.executable).parent / command[0])
    return subprocess.run(command, cwd=_CHECKOUT, check=False).returncode


def _keep_report(server: S3Server, run_name: str, folder: Path) -> Path | None:
    """Copies the run's reports out of the server, which is about to end; the HTML one, if there is one."""
    client = server.client()
    listed = client.list_objects_v2(Bucket=_BUCKET, Prefix=f"runs/{run_name}/report/").get("Contents", [])
    kept = [folder / item["Key"].rpartition("/")[2] for item in listed]
    for item, path in zip(listed, kept, strict=True):
        path.write_bytes(client.get_object(Bucket=_BUCKET, Key=item["Key"])["Body"].read())
    return next((path for path in kept if path.suffix == ".html"), None)


if __name__ == "__main__":
    sys.exit(main())
