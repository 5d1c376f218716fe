"""The rights that machines get: these actions on these things, and nothing beside."""

from __future__ import annotations

from typing import Any

from tests.unit.infra.files import ROOT, read_json, read_yaml

INPUT, OUTPUT = "arn:aws:s3:::INPUT-BUCKET", "arn:aws:s3:::OUTPUT-BUCKET"


def _rights(path: str) -> set[tuple[str, str]]:
    """Every action with every resource that it is allowed on."""
    policy: dict[str, Any] = read_json(path)
    assert policy["Version"] == "2012-10-17"
    assert all(
        set(statement) <= {"Sid", "Effect", "Action", "Resource", "Condition"} for statement in policy["Statement"]
    )
    assert {statement["Effect"] for statement in policy["Statement"]} == {"Allow"}
    return {
        (action, resource)
        for statement in policy["Statement"]
        for action in statement["Action"]
        for resource in statement["Resource"]
    }


def test_a_worker_reads_documents_writes_runs_and_deletes_nothing() -> None:
    assert _rights("infra/iam-policy.json") == {
        ("s3:ListBucket", INPUT),
        ("s3:ListBucket", OUTPUT),
        ("s3:GetObject", f"{INPUT}/documents/*"),
        ("s3:GetObject", f"{OUTPUT}/runs/*"),
        ("s3:PutObject", f"{OUTPUT}/runs/*"),
        # Of what was never whole: a large upload that failed half way.
        ("s3:AbortMultipartUpload", f"{OUTPUT}/runs/*"),
    }


def test_a_head_starts_workers_with_one_role_and_ends_those_of_its_own_cluster_alone() -> None:
    rights = _rights("infra/iam-head-policy.json")
    assert {action for action, _ in rights} == {
        "ec2:Describe*",
        "ec2:RunInstances",
        "ec2:CreateTags",
        "ec2:TerminateInstances",
        "iam:PassRole",
        "ssm:GetParameters",
    }
    assert [resource for action, resource in rights if action == "iam:PassRole"] == [
        "arn:aws:iam::ACCOUNT:role/recordmill-worker"
    ]
    (ends,) = (
        statement
        for statement in read_json("infra/iam-head-policy.json")["Statement"]
        if "ec2:TerminateInstances" in statement["Action"]
    )
    assert ends["Condition"] == {"StringEquals": {"aws:ResourceTag/ray-cluster-name": "recordmill"}}


def test_the_role_that_a_head_may_give_is_the_workers_and_the_page_says_what_to_write_into_it() -> None:
    workers = read_yaml("ray_cluster.yaml")["available_node_types"]["gpu-spot"]["node_config"]["IamInstanceProfile"]
    assert ("iam:PassRole", f"arn:aws:iam::ACCOUNT:role/{workers['Name']}") in _rights("infra/iam-head-policy.json")
    page = " ".join((ROOT / "docs" / "cluster.md").read_text().split())
    assert "number in place of `ACCOUNT` in `infra/iam-head-policy.json`" in page
    assert f"a role and an instance profile of the same name, twice: `{workers['Name']}`" in page
