"""What `check` finds of a bucket: there, in our region, and ours to write to."""

from pathlib import Path
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse

from datalake_assets.preflight.storage import bucket_findings, bucket_region
from eventlake.aws.access import AwsAccess
from eventlake.aws.lifecycle import apply_lifecycle, our_rules, read_lifecycle
from eventlake.lake import Lake
from eventlake.rules.errors import InvalidSetting
from eventlake.storage import LocalStorage
from eventlake.storage.base import probe
from eventlake.storage.s3 import S3Storage
from tests.support.aws.enforced import Become, Body, enforced
from tests.support.aws.preflight import LAKE, MakeLake, only_problem, signs
from tests.support.servers.aws import REGION, AwsServer

STAGING_EXPIRES = {
    "ID": "any",
    "Status": "Enabled",
    "Filter": {"Prefix": "segment-stage/"},
    "Expiration": {"Days": 14},
}


@pytest.fixture
def lake(aws: AwsServer, make_lake: MakeLake) -> Lake:
    aws.bucket(LAKE)
    aws.client("s3").put_bucket_lifecycle_configuration(
        Bucket=LAKE, LifecycleConfiguration={"Rules": [STAGING_EXPIRES]}
    )
    return make_lake()


def test_a_healthy_bucket_is_left_as_it_was(
    aws: AwsServer, lake: Lake, make_lake: MakeLake
) -> None:
    found = list(bucket_findings(lake))
    assert signs(found) == {
        "storage": "✓",
        "segment-stage": "✓",
        "segment-data": "✓",
        "sync_tracking_datasets": "✓",
    }
    assert found[0].message == f"s3://{LAKE} in eu-west-1"
    on_emr = signs(bucket_findings(make_lake(engine="emr", emr_cluster_id="j-1")))
    assert on_emr["Pipes messages"] == "✓"
    assert aws.content(LAKE) == {}


def test_a_bucket_that_does_not_exist(make_lake: MakeLake) -> None:
    said = only_problem(bucket_findings(make_lake()), "storage")
    assert said.startswith("Eventlake has invalid configuration for `storage`: S3 bucket")


def test_a_bucket_in_another_region(aws: AwsServer, make_lake: MakeLake) -> None:
    aws.bucket(LAKE, "us-west-2")
    said = only_problem(bucket_findings(make_lake()), "storage")
    assert said.startswith(f"Eventlake has invalid configuration for `region`: S3 bucket {LAKE} is")
    assert "set `region: us-west-2`" in said


def test_no_region_at_all(lake: Lake, make_lake: MakeLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    said = only_problem(bucket_findings(make_lake(region=None)), "storage")
    assert said.startswith("Eventlake has invalid configuration for `region`: none is set")
    assert "Set `region: eu-west-1`" in said


NO = "does not have permissions to"


@pytest.mark.parametrize(
    ("denied", "words"),
    [
        ("s3:PutObject", "was unable to upload staging data to your S3 Bucket"),
        ("s3:GetObject", f"{NO} download object from S3 Bucket"),
        ("s3:DeleteObject", f"{NO} delete S3 objects from S3 Bucket"),
        ("s3:ListBucket", f"{NO} list objects of S3 Bucket"),
        ("s3:ListBucketMultipartUploads", f"{NO} list objects of S3 Bucket"),
    ],
)
def test_a_missing_permission_is_reported_with_the_statement_to_grant(
    aws: AwsServer, lake: Lake, become: Become, denied: str, words: str
) -> None:
    become(denied)
    with enforced(aws):
        staging = next(f for f in bucket_findings(lake) if f.what == "segment-stage")
    assert staging.sign == "✗"
    assert staging.message.startswith(f"Eventlake {words}")
    assert f'"Action": "{denied}"' in staging.message or f'"{denied}", ' in staging.message


def test_staging_files_that_do_not_expire_are_a_warning(aws: AwsServer, lake: Lake) -> None:
    aws.client("s3").delete_bucket_lifecycle(Bucket=LAKE)
    assert "`datalake aws lifecycle` adds one" in only_problem(bucket_findings(lake), "lifecycle")


def test_versions_that_do_not_expire_are_a_warning(aws: AwsServer, lake: Lake) -> None:
    versioned = {"Status": "Enabled"}
    aws.client("s3").put_bucket_versioning(Bucket=LAKE, VersioningConfiguration=versioned)
    said = only_problem(bucket_findings(lake), "versions")
    assert "no rule expires them in segment-data and sync_tracking_datasets" in said

    access = AwsAccess(REGION)
    apply_lifecycle(access, read_lifecycle(access, LAKE, our_rules("", 14)))
    assert set(signs(bucket_findings(lake)).values()) == {"✓"}


class Forgetful(LocalStorage):
    """Overwrites what was to be created only if absent."""

    def create(self, path: str, data: bytes) -> bool:
        self.write(path, data)
        return True


def test_a_store_that_ignores_conditions_cannot_hold_a_lake(tmp_path: Path) -> None:
    assert probe(LocalStorage(str(tmp_path)), "segment-stage").endswith("listed and cleared")
    with pytest.raises(InvalidSetting, match="two runs could commit the same manifest"):
        probe(Forgetful(str(tmp_path)), "segment-stage")
    assert list(tmp_path.rglob("probe")) == []


@pytest.mark.parametrize(("status", "region"), [(403, "eu-west-1"), (301, "us-west-2")])
def test_the_region_is_known_even_if_the_bucket_itself_may_not_be_read(
    lake: Lake, status: int, region: str
) -> None:
    storage = lake.storage
    assert isinstance(storage, S3Storage)

    def answer(request: Any, **_: Any) -> AWSResponse:
        return AWSResponse(request.url, status, {"x-amz-bucket-region": region}, Body())

    storage.client.meta.events.register("before-send.s3.HeadBucket", answer)
    assert bucket_region(storage) == region
