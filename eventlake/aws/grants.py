"""What to grant: the policy statement for an action that was refused."""

import json
from collections.abc import Sequence

from eventlake.rules import paths

# What a call of S3 takes is not always called like it.
_S3_ACTIONS = {
    "HeadObject": "s3:GetObject",
    "ListObjects": "s3:ListBucket",
    "ListObjectsV2": "s3:ListBucket",
    "HeadBucket": "s3:ListBucket",
    "DeleteObjects": "s3:DeleteObject",
    "CopyObject": "s3:PutObject",
    "CreateMultipartUpload": "s3:PutObject",
    "UploadPart": "s3:PutObject",
    "UploadPartCopy": "s3:PutObject",
    "CompleteMultipartUpload": "s3:PutObject",
    "ListMultipartUploads": "s3:ListBucketMultipartUploads",
    "GetBucketLifecycleConfiguration": "s3:GetLifecycleConfiguration",
    "PutBucketLifecycleConfiguration": "s3:PutLifecycleConfiguration",
}
_ON_BUCKETS = frozenset(
    {
        "s3:ListBucket",
        "s3:ListBucketMultipartUploads",
        "s3:GetBucketLocation",
        "s3:GetLifecycleConfiguration",
        "s3:PutLifecycleConfiguration",
    }
)


def action_of(service: str, operation: str) -> str | None:
    """The action that a call takes."""
    if not operation:
        return None
    if service == "s3":
        return _S3_ACTIONS.get(operation, f"s3:{operation}")
    return f"{service}:{operation}"


def object_arn(action: str, bucket: str, key: str) -> str:
    """What of S3 an action is about."""
    on_bucket = action in _ON_BUCKETS or not key
    return f"arn:aws:s3:::{bucket}" if on_bucket else f"arn:aws:s3:::{bucket}/{key}"


def grant_arn(arn: str) -> str:
    """The resource to name in a statement: of an object the whole folder of the lake it is in."""
    place, _, key = arn.removeprefix("arn:aws:s3:::").partition("/")
    if not arn.startswith("arn:aws:s3:::") or not key:
        return arn
    parts = key.split("/")
    ours = next((n for n, part in enumerate(parts) if part in paths.OURS), None)
    folder = "" if ours is None else "/".join(parts[: ours + 1]) + "/"
    return f"arn:aws:s3:::{place}/{folder}*"


def statement(actions: Sequence[str], resources: Sequence[str]) -> dict[str, object]:
    """A statement to add to a policy as it is."""
    granted: dict[str, object] = {
        "Effect": "Allow",
        "Action": list(actions) if len(actions) > 1 else actions[0],
        "Resource": list(resources) if len(resources) > 1 else resources[0],
    }
    if actions[0].startswith("elasticmapreduce:"):
        made = actions[0] == "elasticmapreduce:RunJobFlow"
        tag = "aws:RequestTag/vendor" if made else "elasticmapreduce:ResourceTag/vendor"
        granted["Condition"] = {"StringEquals": {tag: "segment"}}
    return granted


def as_text(granted: dict[str, object]) -> str:
    return json.dumps(granted, separators=(", ", ": "))
