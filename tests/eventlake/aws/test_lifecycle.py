"""Our lifecycle rules among others' rules: pure, and on a bucket of the local S3."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlake.aws.access import AwsAccess, forget_sessions
from eventlake.aws.lifecycle import change, look, merged, our_rules
from eventlake.rules.errors import InsufficientPermissions
from tests.support.aws.enforced import User, enforced
from tests.support.servers.aws import REGION, AwsServer

ARCHIVE: dict[str, Any] = {
    "ID": "archive the books",
    "Status": "Enabled",
    "Filter": {"Prefix": "finance/"},
    "Transitions": [{"Days": 30, "StorageClass": "GLACIER"}],
}
NAMELESS: dict[str, Any] = {"Status": "Disabled", "Prefix": "", "Expiration": {"Days": 1}}
OLD = our_rules("", 3)


def test_staging_goes_after_its_days_and_unfinished_uploads_from_all_we_write() -> None:
    stage, data, tracking = our_rules("events/", 14)
    assert stage["ID"] == "datalake-events/segment-stage"
    assert stage["Filter"] == {"Prefix": "events/segment-stage/"}
    assert stage["Expiration"] == {"Days": 14}
    for rule in (data, tracking):
        assert rule.keys() == {"ID", "Status", "Filter", "AbortIncompleteMultipartUpload"}


@pytest.mark.parametrize(
    ("present", "ids"),
    [
        ([], ["stage", "data", "tracking"]),
        ([ARCHIVE], ["archive", "stage", "data", "tracking"]),
        ([OLD[0], ARCHIVE], ["stage", "archive", "data", "tracking"]),
        ([NAMELESS], ["nameless", "stage", "data", "tracking"]),
    ],
    ids=["none yet", "others' rule", "ours of before", "a rule without id"],
)
def test_ours_come_anew_and_others_stay_in_place(present: list[Any], ids: list[str]) -> None:
    stage, data, tracking = ours = our_rules("", 14)
    known = {"stage": stage, "data": data, "tracking": tracking}
    others = {"archive": ARCHIVE, "nameless": NAMELESS}
    assert merged(present, ours) == [(known | others)[name] for name in ids]


RULES = st.lists(
    st.sampled_from([ARCHIVE, {**ARCHIVE, "ID": "b"}, *OLD]), unique_by=lambda rule: rule["ID"]
)


@given(RULES)
def test_merging_again_changes_nothing_and_loses_nobody(present: list[dict[str, Any]]) -> None:
    ours = our_rules("", 14)
    once = merged(present, ours)
    assert merged(once, ours) == once
    assert [r for r in once if r not in ours] == [r for r in present if r not in OLD]
    assert all(rule in once for rule in ours)


def test_an_existing_bucket_keeps_the_rules_it_had(aws: AwsServer) -> None:
    access, bucket = AwsAccess(REGION), aws.bucket()
    s3 = aws.client("s3")
    s3.put_bucket_lifecycle_configuration(
        Bucket=bucket, LifecycleConfiguration={"Rules": [ARCHIVE]}
    )
    planned = look(access, bucket, our_rules("", 14))
    assert planned.kept == [ARCHIVE]
    assert planned.changes == our_rules("", 14)
    assert s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"] == [ARCHIVE]

    change(access, planned)
    rules = s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]
    assert rules == [ARCHIVE, *our_rules("", 14)]
    assert look(access, bucket, our_rules("", 14)).changes == []


def test_a_bucket_without_a_lifecycle_gets_one(aws: AwsServer) -> None:
    access, bucket = AwsAccess(REGION), aws.bucket()
    change(access, look(access, bucket, our_rules("events/", 14)))
    found = aws.client("s3").get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]
    assert found == our_rules("events/", 14)


def test_who_may_not_change_it_is_told_what_to_grant(
    aws: AwsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = aws.bucket()
    user = User(aws, denied=["s3:PutLifecycleConfiguration"])
    for name, value in user.environment.items():
        monkeypatch.setenv(name, value)
    forget_sessions()
    access = AwsAccess("eu-west-1")
    planned = look(access, bucket, our_rules("", 14))
    with enforced(aws), pytest.raises(InsufficientPermissions, match="s3:PutLifecycle"):
        change(access, planned)
