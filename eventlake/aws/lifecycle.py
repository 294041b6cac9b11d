"""Lifecycle rules of the bucket: the lake's rules beside existing ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from botocore.exceptions import ClientError

from eventlake.aws.access import AwsAccess
from eventlake.aws.refusals import aws_call
from eventlake.rules import paths

Rule: TypeAlias = dict[str, Any]

_UNFINISHED_DAYS = 7  # longer than any upload takes
# Of versioned buckets: time to undo a mistake, but removed people do not survive there.
_NONCURRENT_DAYS = 7
LOG_DAYS = 90
LASTING = ("segment-data", "sync_tracking_datasets")
"""Folders with data of people, which must not survive as old versions."""


def our_rules(prefix: str, stage_days: int) -> list[Rule]:
    """Rules for the lake's folders: staging and logs expire, and so do replaced versions."""
    unfinished = {"AbortIncompleteMultipartUpload": {"DaysAfterInitiation": _UNFINISHED_DAYS}}
    stage = _expiring(prefix, "segment-stage", stage_days) | unfinished
    logs = _expiring(prefix, paths.LOGS, LOG_DAYS)
    return [stage, *(_versions_expire(prefix, folder) | unfinished for folder in LASTING), logs]


def _rule(prefix: str, folder: str) -> Rule:
    return {
        "ID": f"datalake-{prefix}{folder}",
        "Status": "Enabled",
        "Filter": {"Prefix": f"{prefix}{folder}/"},
    }


def _expiring(prefix: str, folder: str, days: int) -> Rule:
    return {
        **_rule(prefix, folder),
        "Expiration": {"Days": days},
        # Without this, versioned buckets would keep deleted files forever.
        "NoncurrentVersionExpiration": {"NoncurrentDays": 1},
    }


def _versions_expire(prefix: str, folder: str) -> Rule:
    return {
        **_rule(prefix, folder),
        "Expiration": {"ExpiredObjectDeleteMarker": True},
        "NoncurrentVersionExpiration": {"NoncurrentDays": _NONCURRENT_DAYS},
    }


def merged(present: Sequence[Rule], ours: Sequence[Rule]) -> list[Rule]:
    """The existing rules with ours replaced in place, or appended."""
    wanted = {rule["ID"]: rule for rule in ours}
    kept = [wanted.pop(rule.get("ID", ""), rule) for rule in present]
    return [*kept, *wanted.values()]


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """The present and the wanted rules of a bucket."""

    bucket: str
    present: list[Rule]
    wanted: list[Rule]
    transition_size: str | None = None  # lost unless it is sent back

    @property
    def changes(self) -> list[Rule]:
        """The rules that are missing or differ."""
        return [rule for rule in self.wanted if rule not in self.present]

    @property
    def kept(self) -> list[Rule]:
        return [rule for rule in self.wanted if rule in self.present]


def read_lifecycle(access: AwsAccess, bucket: str, ours: Sequence[Rule]) -> Lifecycle:
    """Read the lifecycle of a bucket and merge our rules into it."""
    try:
        with aws_call(bucket):
            found = access.client("s3").get_bucket_lifecycle_configuration(Bucket=bucket)
    except ClientError as error:
        if error.response["Error"]["Code"] != "NoSuchLifecycleConfiguration":
            raise
        found = {"Rules": []}
    present = found["Rules"]
    size = found.get("TransitionDefaultMinimumObjectSize")
    return Lifecycle(bucket, present, merged(present, ours), size)


def is_versioned(access: AwsAccess, bucket: str) -> bool:
    """Whether the bucket keeps replaced and deleted objects, or used to."""
    with aws_call(bucket):
        return "Status" in access.client("s3").get_bucket_versioning(Bucket=bucket)


def apply_lifecycle(access: AwsAccess, lifecycle: Lifecycle) -> None:
    """Apply the wanted rules; S3 replaces all rules at once."""
    size = {"TransitionDefaultMinimumObjectSize": lifecycle.transition_size}
    with aws_call(lifecycle.bucket):
        access.client("s3").put_bucket_lifecycle_configuration(
            Bucket=lifecycle.bucket,
            LifecycleConfiguration={"Rules": lifecycle.wanted},
            **(size if lifecycle.transition_size else {}),
        )
