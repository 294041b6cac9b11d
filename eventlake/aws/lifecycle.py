"""Lifecycle rules of the bucket: the lake's rules beside existing ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from botocore.exceptions import ClientError

from eventlake.aws.access import AwsAccess
from eventlake.aws.refusals import aws_call

Rule: TypeAlias = dict[str, Any]

_UNFINISHED_DAYS = 7  # longer than any upload takes


def our_rules(prefix: str, stage_days: int) -> list[Rule]:
    """Rules that expire staging files and abort incomplete uploads, in the lake's folders only."""
    stage = _rule(prefix, "segment-stage")
    stage["Expiration"] = {"Days": stage_days}
    # Without this, versioned buckets would keep deleted files forever.
    stage["NoncurrentVersionExpiration"] = {"NoncurrentDays": 1}
    return [
        stage,
        _rule(prefix, "segment-data"),
        _rule(prefix, "sync_tracking_datasets"),
    ]


def _rule(prefix: str, folder: str) -> Rule:
    return {
        "ID": f"datalake-{prefix}{folder}",
        "Status": "Enabled",
        "Filter": {"Prefix": f"{prefix}{folder}/"},
        "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": _UNFINISHED_DAYS},
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


def apply_lifecycle(access: AwsAccess, lifecycle: Lifecycle) -> None:
    """Apply the wanted rules; S3 replaces all rules at once."""
    size = {"TransitionDefaultMinimumObjectSize": lifecycle.transition_size}
    with aws_call(lifecycle.bucket):
        access.client("s3").put_bucket_lifecycle_configuration(
            Bucket=lifecycle.bucket,
            LifecycleConfiguration={"Rules": lifecycle.wanted},
            **(size if lifecycle.transition_size else {}),
        )
