"""Tests of `demo.s3`: the server refuses what S3 refuses, and leaves nothing running."""

import contextlib
import os
from pathlib import Path

import botocore.session
import pytest
from botocore.exceptions import ClientError

from demo.s3 import S3Server, S3ServerError

pytestmark = pytest.mark.s3


def _code(error: pytest.ExceptionInfo[ClientError]) -> str:
    return str(error.value.response["Error"]["Code"])


def test_a_second_conditional_put_is_refused(s3_server: S3Server) -> None:
    s3_server.bucket("conditional")
    client = s3_server.client()
    client.put_object(Bucket="conditional", Key="one", Body=b"first", IfNoneMatch="*")
    with pytest.raises(ClientError) as error:
        client.put_object(Bucket="conditional", Key="one", Body=b"second", IfNoneMatch="*")
    assert _code(error) == "PreconditionFailed"
    assert client.get_object(Bucket="conditional", Key="one")["Body"].read() == b"first"


def test_another_secret_is_refused(s3_server: S3Server) -> None:
    client = botocore.session.Session().create_client(
        "s3",
        region_name="us-east-1",
        endpoint_url=s3_server.endpoint_url,
        aws_access_key_id=s3_server.access_key,
        aws_secret_access_key="not the secret",
    )
    with pytest.raises(ClientError) as error:
        client.list_buckets()
    assert _code(error) in ("SignatureDoesNotMatch", "AccessDenied")


def test_the_environment_is_all_that_another_client_needs(s3_bucket: str) -> None:
    client = botocore.session.Session().create_client("s3")
    name = s3_bucket.removeprefix("s3://").rstrip("/")
    assert name in [bucket["Name"] for bucket in client.list_buckets()["Buckets"]]


def test_making_a_bucket_again_keeps_what_is_in_it(s3_server: S3Server) -> None:
    s3_server.bucket("again")
    s3_server.client().put_object(Bucket="again", Key="kept", Body=b"x")
    assert s3_server.bucket("again") == "s3://again/"
    assert s3_server.client().get_object(Bucket="again", Key="kept")["Body"].read() == b"x"


def test_a_server_ends_with_its_block_and_its_data_outlive_it(tmp_path: Path) -> None:
    with S3Server(tmp_path, access_key="first", secret_key="first-secret") as server:
        server.bucket("lasting")
        server.client().put_object(Bucket="lasting", Key="kept", Body=b"x")
        pid = server.pid
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(S3ServerError):
        _ = server.endpoint_url
    with S3Server(tmp_path, access_key="first", secret_key="first-secret") as server:
        assert server.client().get_object(Bucket="lasting", Key="kept")["Body"].read() == b"x"


def test_an_exception_inside_the_block_stops_the_server() -> None:
    with contextlib.suppress(KeyError), S3Server() as server:
        pid = server.pid
        raise KeyError
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
