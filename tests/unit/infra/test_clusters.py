"""The cluster files: what Ray and KubeRay would refuse, and what a user would be sorry for."""

from __future__ import annotations

import copy
import itertools
import re
import shlex
from typing import Any

import jsonschema
import pytest
import yaml
from ray.autoscaler._private.util import prepare_config, validate_config

from pipeline.cli.specs import load_spec
from tests.unit.infra.files import ROOT, locked, read_json, read_yaml


@pytest.fixture
def cluster() -> dict[str, Any]:
    read: dict[str, Any] = read_yaml("ray_cluster.yaml")
    return read


@pytest.fixture
def ray_job() -> dict[str, Any]:
    read: dict[str, Any] = read_yaml("infra/kuberay/rayjob.yaml")
    return read


def _for_a_gated_model(path: str) -> Any:
    """A file as it is once the lines that hand on the hub's token are no comments any more."""
    line = re.compile(r"# (?=~/\.cache/huggingface/token:|env: \[\{name: HF_TOKEN,)")
    text, count = line.subn("", (ROOT / path).read_text())
    assert count
    return yaml.safe_load(text)


def _checked(config: dict[str, Any]) -> dict[str, Any]:
    """As `ray up` reads it: with Ray's defaults, against Ray's own schema."""
    prepared: dict[str, Any] = prepare_config(copy.deepcopy(config))
    validate_config(prepared)
    return prepared


def test_ray_takes_the_cluster_file(cluster: dict[str, Any]) -> None:
    types = _checked(cluster)["available_node_types"]
    assert (types["gpu-spot"]["min_workers"], types["gpu-spot"]["max_workers"]) == (0, 8)
    assert cluster["max_workers"] >= types["gpu-spot"]["max_workers"]


@pytest.mark.parametrize(
    "change",
    [
        {"max_worker": 8},
        {"head_node_type": "heads"},
        {"setup_commands": [1]},
        {"idle_timeout_minutes": "5"},
        {"provider": {"region": "us-west-2"}},
    ],
)
def test_ray_would_refuse_a_wrong_cluster_file(cluster: dict[str, Any], change: dict[str, Any]) -> None:
    with pytest.raises((jsonschema.ValidationError, ValueError, KeyError)):
        _checked(cluster | change)


def test_the_head_is_on_demand_and_holds_no_engine_and_workers_are_spot(cluster: dict[str, Any]) -> None:
    types = dict(cluster["available_node_types"])
    head = types.pop(cluster["head_node_type"])
    assert "InstanceMarketOptions" not in head["node_config"]
    assert head["resources"] == {"CPU": 0}
    assert types
    for worker in types.values():
        assert worker["node_config"]["InstanceMarketOptions"]["MarketType"] == "spot"
        assert worker["resources"]["GPU"] > 0


def test_every_machine_has_a_role_and_no_credentials(cluster: dict[str, Any]) -> None:
    for kind in cluster["available_node_types"].values():
        assert kind["node_config"]["IamInstanceProfile"]
        assert kind["node_config"]["MetadataOptions"] == {"HttpTokens": "required"}
    assert not [
        word for word in ("AWS_SECRET", "AWS_ACCESS", "AKIA") if word in (ROOT / "ray_cluster.yaml").read_text()
    ]


def test_the_cluster_asks_for_a_token_and_its_dashboard_listens_on_the_head_alone(cluster: dict[str, Any]) -> None:
    starts = [*cluster["head_start_ray_commands"], *cluster["worker_start_ray_commands"]]
    started = [command for command in starts if "ray start" in command]
    assert len(started) == 2
    assert all("RAY_AUTH_MODE=token" in command for command in started)
    assert "~/.ray/auth_token" in cluster["file_mounts"]
    assert "--dashboard-host=127.0.0.1" in started[0]


def test_machines_install_the_lock_and_the_gpu_extra(cluster: dict[str, Any]) -> None:
    commands = "\n".join(cluster["setup_commands"])
    assert "--no-deps -r ~/recordmill/infra/requirements-gpu.lock" in commands
    assert (ROOT / "infra" / "requirements-gpu.lock").is_file()
    assert "recordmill[gpu]" in commands
    assert cluster["file_mounts"]["~/recordmill"] == "."


def test_the_hubs_token_can_be_copied_to_the_machines() -> None:
    config = _for_a_gated_model("ray_cluster.yaml")
    _checked(config)
    assert config["file_mounts"]["~/.cache/huggingface/token"] == "~/.cache/huggingface/token"


def test_the_page_installs_the_launcher_in_the_machines_version() -> None:
    version = locked("requirements-gpu.lock")["ray"]
    assert f'pip install "ray[default]=={version}" boto3\n' in (ROOT / "docs" / "cluster.md").read_text()


def test_kuberay_takes_the_job(ray_job: dict[str, Any]) -> None:
    schema = read_json("tests/data/kuberay-rayjob.schema.json")
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(ray_job)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("spec", "shutdownAfterJobFinish"), True),
        (("spec", "submissionMode"), "Job"),
        (("spec", "shutdownAfterJobFinishes"), False),
        (("spec", "rayClusterSpec", "authOptions", "mode"), "on"),
        (("spec", "rayClusterSpec", "headGroupSpec", "rayStartParams", "num-cpus"), 0),
        (("spec", "rayClusterSpec", "workerGroupSpecs", 0, "maxReplicas"), "8"),
        (("spec", "rayClusterSpec", "workerGroupSpecs", 0, "template", "spec", "nodeSelektor"), {}),
        (
            ("spec", "rayClusterSpec", "headGroupSpec", "template", "spec", "containers", 0, "resources", "limits"),
            {"cpu": "x"},
        ),
    ],
)
def test_kuberay_would_refuse_a_wrong_job(ray_job: dict[str, Any], path: tuple[str | int, ...], value: object) -> None:
    changed: Any = copy.deepcopy(ray_job)
    *parents, last = path
    section = changed
    for parent in parents:
        section = section[parent]
    section[last] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(changed, read_json("tests/data/kuberay-rayjob.schema.json"))


def test_the_job_ends_its_cluster_retries_and_asks_for_a_token(ray_job: dict[str, Any]) -> None:
    spec = ray_job["spec"]
    assert spec["shutdownAfterJobFinishes"] is True
    assert spec["backoffLimit"] > 0
    assert spec["rayClusterSpec"]["authOptions"] == {"mode": "token"}
    assert spec["rayClusterSpec"]["rayVersion"] == locked("requirements-gpu.lock")["ray"]


def test_the_jobs_head_stays_and_its_workers_are_on_spot(ray_job: dict[str, Any]) -> None:
    cluster = ray_job["spec"]["rayClusterSpec"]
    head = cluster["headGroupSpec"]
    assert head["rayStartParams"]["num-cpus"] == "0"
    assert head["template"]["spec"]["nodeSelector"] == {"karpenter.sh/capacity-type": "on-demand"}
    for group in cluster["workerGroupSpecs"]:
        assert group["template"]["spec"]["nodeSelector"] == {"karpenter.sh/capacity-type": "spot"}
        (container,) = group["template"]["spec"]["containers"]
        assert container["resources"]["limits"]["nvidia.com/gpu"] == "1"
        mounted = {mount["name"] for mount in container["volumeMounts"]}
        assert mounted == {volume["name"] for volume in group["template"]["spec"]["volumes"]}


def test_pods_run_without_rights_on_a_pinned_image(ray_job: dict[str, Any]) -> None:
    cluster = ray_job["spec"]["rayClusterSpec"]
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        pod = group["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        for container in pod["containers"]:
            assert container["securityContext"]["allowPrivilegeEscalation"] is False
            assert container["image"].rpartition(":")[2] not in ("", "latest")


def test_the_jobs_runtime_environment_is_the_images_folder_and_holds_no_variables(ray_job: dict[str, Any]) -> None:
    assert yaml.safe_load(ray_job["spec"]["runtimeEnvYAML"]) == {"working_dir": "/job"}
    assert "WORKDIR /job" in (ROOT / "infra" / "Dockerfile").read_text()


def test_the_hubs_token_comes_from_a_secret_to_head_and_workers() -> None:
    job = _for_a_gated_model("infra/kuberay/rayjob.yaml")
    jsonschema.validate(job, read_json("tests/data/kuberay-rayjob.schema.json"))
    cluster = job["spec"]["rayClusterSpec"]
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        (container,) = group["template"]["spec"]["containers"]
        (variable,) = container["env"]
        assert variable["name"] == "HF_TOKEN"
        assert "value" not in variable


def test_the_jobs_command_is_a_job_for_gpus_within_the_rights_of_the_policy(ray_job: dict[str, Any]) -> None:
    words = shlex.split(ray_job["spec"]["entrypoint"])
    assert words[:2] == ["recordmill", "run"]
    overrides = [value for option, value in itertools.pairwise(words) if option == "--set"]
    # Places and size alone: what the job is like stands in its file, which was made for such a cluster.
    assert {text.partition("=")[0] for text in overrides} == {"input.uri", "output.uri", "cluster.engines"}
    job = load_spec(ROOT / words[2], overrides)
    assert job.cluster.gpus_per_engine == 1
    assert job.cluster.engines == ray_job["spec"]["rayClusterSpec"]["workerGroupSpecs"][0]["maxReplicas"]
    assert job.model.revision is not None
    resources = {
        item for statement in read_json("infra/iam-policy.json")["Statement"] for item in statement["Resource"]
    }
    for uri in (*job.input.uris, job.output.uri):
        bucket, _, prefix = uri.removeprefix("s3://").partition("/")
        assert f"arn:aws:s3:::{bucket}/{prefix.partition('/')[0]}/*" in resources
