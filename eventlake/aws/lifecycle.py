"""What a bucket removes by itself: the lake's rules among those that others have made."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from botocore.exceptions import ClientError

from eventlake.aws.access import AwsAccess
from eventlake.aws.refusals import aws_call

Rule: TypeAlias = dict[str, Any]

_UNFINISHED_DAYS = 7  # longer than any run takes to upload a file


def our_rules(prefix: str, stage_days: int) -> list[Rule]:
    """Staging goes after some days, uploads that nobody finished go from all we write to.

    They name the lake's folders only: whatever else lies in the bucket is not ours to remove.
    """
    stage = _rule(prefix, "segment-stage")
    stage["Expiration"] = {"Days": stage_days}
    # Where the bucket keeps versions, what is removed would stay for ever without this.
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
    """Others' rules as they are and where they stand; ours anew, after them if there were none."""
    wanted = {rule["ID"]: rule for rule in ours}
    kept = [wanted.pop(rule.get("ID", ""), rule) for rule in present]
    return [*kept, *wanted.values()]


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """The rules of a bucket, as they are and as they are to be."""

    bucket: str
    present: list[Rule]
    wanted: list[Rule]
    transition_size: str | None = None  # a setting of the whole lifecycle, lost if not sent back

    @property
    def changes(self) -> list[Rule]:
        """The rules that are missing or not as they should be."""
        return [rule for rule in self.wanted if rule not in self.present]

    @property
    def kept(self) -> list[Rule]:
        return [rule for rule in self.wanted if rule in self.present]


def look(access: AwsAccess, bucket: str, ours: Sequence[Rule]) -> Lifecycle:
    """What a bucket's lifecycle is, and what it becomes with our rules."""
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


def change(access: AwsAccess, lifecycle: Lifecycle) -> None:
    """Give the bucket the rules it is to have; S3 takes them all at once or not at all."""
    size = {"TransitionDefaultMinimumObjectSize": lifecycle.transition_size}
    with aws_call(lifecycle.bucket):
        access.client("s3").put_bucket_lifecycle_configuration(
            Bucket=lifecycle.bucket,
            LifecycleConfiguration={"Rules": lifecycle.wanted},
            **(size if lifecycle.transition_size else {}),
        )
