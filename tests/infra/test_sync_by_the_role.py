"""Syncs and a replay on S3 and Glue, each request to S3 held to the policy of the role."""

import logging
import re
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from botocore.stub import Stubber

from datalake_assets.preflight.storage import bucket_findings, bucket_region
from eventlake.lake import Lake
from eventlake.runs.unit import Window
from eventlake.storage.s3 import S3Storage
from tests.support.aws.enforced import Become, allows
from tests.support.aws.stack import REGION, Stack, deploy
from tests.support.lakes.archive import Archive, identify, order
from tests.support.lakes.jobs import run
from tests.support.lakes.platform import InProcessEngine
from tests.support.lakes.runs import utc
from tests.support.lakes.settings import SHOP, settings_of
from tests.support.servers.aws import AwsServer

REQUEST = re.compile(r'"(?:\x1b\[\d+m)*([A-Z]+) (/\S+) HTTP')
BUCKET = "arn:aws:s3:::lake-bucket"
# The region comes with a refusal, too; the lifecycle is looked at without the role, if at all.
WITHOUT_THE_ROLE = {("HEAD", "/lake-bucket"), ("GET", "/lake-bucket?lifecycle")}
WITHOUT_THE_ROLE |= {("GET", "/lake-bucket?versioning")}
WINDOW = Window(utc("2026-10-01"), utc("2026-10-02"))


def needed(method: str, url: str) -> tuple[str, str, str]:
    """The action of a request to S3, the resource, and the prefix it is about."""
    place, query = urlsplit(url), parse_qs(urlsplit(url).query, keep_blank_values=True)
    key = unquote(place.path.removeprefix("/lake-bucket").lstrip("/"))
    if key:
        writing = {"PUT": "PutObject", "POST": "PutObject", "DELETE": "DeleteObject"}
        action = writing.get(method, "GetObject")
        if method == "DELETE" and "uploadId" in query:
            action = "AbortMultipartUpload"
        return f"s3:{action}", f"{BUCKET}/{key}", key
    if method == "GET" and "uploads" in query:
        return "s3:ListBucketMultipartUploads", BUCKET, ""
    if method == "GET" and query.get("list-type") == ["2"]:
        return "s3:ListBucket", BUCKET, query["prefix"][0]
    assert (method, "delete" in query) == ("POST", True), f"{method} {url}"
    return "s3:DeleteObject", f"{BUCKET}/events/segment-stage/any", ""  # the keys are in the body


@pytest.fixture
def stack(aws: AwsServer, become: Become, tmp_path: Path) -> Stack:
    """The stack, which trusts the user of this process, and an archive in its bucket."""
    deployed = deploy(aws, Prefix="events/", TrustedPrincipals=become().arn)
    day = Archive(tmp_path / "events/segment-logs/S1").day("2026-10-01")
    day.file("a", *(order(f"m{n}", "2026-10-01T07:00", total=n) for n in range(20)))
    day.file("b", identify("m1", "2026-10-01T07:30"), identify("x", "2026-10-01T08:30"))
    for file in tmp_path.rglob("*.gz"):
        key = str(file.relative_to(tmp_path))
        deployed.client("s3").put_object(Bucket="lake-bucket", Key=key, Body=file.read_bytes())
    return deployed


@pytest.fixture
def lake(stack: Stack) -> Lake:
    settings = settings_of(
        "s3://lake-bucket/events",
        SHOP | {"tracking": "all"},
        workspace_id="P3IMS7SBDH",
        catalog="glue",
        region=REGION,
        iam_role_arn=stack.outputs["LakeRoleArn"],
    )
    return Lake.open(settings)


def test_no_request_of_check_syncs_and_replays_would_be_refused(
    stack: Stack, lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    policies = stack.role_documents("LakeRole")
    engine = InProcessEngine()
    with caplog.at_level(logging.INFO, "werkzeug"):
        caplog.clear()
        assert [found for found in bucket_findings(lake) if found.error] == []
        assert run(engine, lake).row_count == 21
        assert run(engine, lake).row_count == 0
        assert run(engine, lake, window=WINDOW).row_count == 21
        assert [table.name for table in lake.catalog.tables("shop")] == ["identify", "track_order"]
        requests = [found for line in caplog.messages if (found := REQUEST.search(line))]

    asked = {
        needed(found[1], found[2])
        for found in requests
        if found[2].startswith("/lake-bucket") and found.groups() not in WITHOUT_THE_ROLE
    }
    assert len({action for action, _, _ in asked}) >= 5
    # What is not there is told as such only to those who may list it.
    asked |= {("s3:ListBucket", BUCKET, key) for action, _, key in asked if "GetObject" in action}
    refused = [one for one in sorted(asked) if not allows(policies, *one[:2], s3__prefix=one[2])]
    assert refused == []


def test_check_finds_the_region_although_the_role_may_not_read_the_bucket_itself(
    lake: Lake,
) -> None:
    storage = lake.storage
    assert isinstance(storage, S3Storage)
    headers = {"HTTPHeaders": {"x-amz-bucket-region": "eu-south-2"}}
    with Stubber(storage.client) as stubbed:
        stubbed.add_client_error("head_bucket", "403", "Forbidden", 403, response_meta=headers)
        assert bucket_region(storage) == "eu-south-2"
