"""Permissions that are missing, with the statement that grants them."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from eventlake.aws.answers import Answer
from eventlake.rules import paths
from eventlake.rules.errors import InsufficientPermissions

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


@dataclass(frozen=True, slots=True)
class _Told:
    words: str  # completes "does not have permissions to …"; the place stands in braces
    actions: tuple[str, ...]  # what it takes, where the answer does not tell what was refused


class Doing(Enum):
    """Each with the words for it, alike in all errors of the same cause, since people filter."""

    STAGE = _Told("upload staging data to S3 bucket {bucket}", ("s3:PutObject",))
    DOWNLOAD = _Told("download objects from S3 bucket {bucket}", ("s3:GetObject",))
    UPLOAD = _Told("upload objects to S3 bucket {bucket}", ("s3:PutObject",))
    DELETE = _Told("delete objects from S3 bucket {bucket}", ("s3:DeleteObject",))
    LIST = _Told("list objects of S3 bucket {bucket}", ("s3:ListBucket",))
    LOOK_AT_BUCKET = _Told("look at the settings of S3 bucket {bucket}", ("s3:GetBucketLocation",))
    CHANGE_BUCKET = _Told(
        "change the lifecycle of S3 bucket {bucket}", ("s3:PutLifecycleConfiguration",)
    )

    SUBMIT_STEP = _Told(
        "submit an EMR job to cluster {place}", ("elasticmapreduce:AddJobFlowSteps",)
    )
    POLL_STEP = _Told(
        "check the status of an EMR job on cluster {place}", ("elasticmapreduce:DescribeStep",)
    )
    CANCEL_STEP = _Told("cancel an EMR job on cluster {place}", ("elasticmapreduce:CancelSteps",))
    LOOK_AT_CLUSTER = _Told("look at EMR cluster {place}", ("elasticmapreduce:DescribeCluster",))
    START_CLUSTER = _Told("start an EMR cluster", ("elasticmapreduce:RunJobFlow",))
    END_CLUSTER = _Told("terminate EMR cluster {place}", ("elasticmapreduce:TerminateJobFlows",))

    FETCH_SCHEMA = _Told("fetch schema information from Glue catalog", ("glue:GetTable",))
    CHANGE_SCHEMA = _Told("change tables of Glue catalog", ("glue:UpdateTable",))
    CREATE_SCHEMA = _Told("create tables in Glue catalog", ("glue:CreateTable",))
    DELETE_TABLE = _Told("delete table from Glue catalog", ("glue:DeleteTable",))

    PUBLISH = _Told("publish to SNS topic {place}", ("sns:Publish",))
    LOOK_AT_TOPIC = _Told("look at SNS topic {place}", ("sns:GetTopicAttributes",))

    ASSUME_ROLE = _Told("assume role {place}", ("sts:AssumeRole",))

    @property
    def words(self) -> str:
        return self.value.words

    @property
    def actions(self) -> tuple[str, ...]:
        return self.value.actions

    @property
    def service(self) -> str:
        """As the actions of policies begin."""
        return self.actions[0].split(":")[0]

    @property
    def service_name(self) -> str:
        """As people call it."""
        return _SERVICES[self.service]


_SERVICES = {"s3": "S3", "elasticmapreduce": "EMR", "glue": "Glue", "sts": "STS", "sns": "SNS"}
_BY_OPERATION = {
    "HeadObject": Doing.DOWNLOAD,
    "GetObject": Doing.DOWNLOAD,
    "PutObject": Doing.UPLOAD,
    "CopyObject": Doing.UPLOAD,
    "CreateMultipartUpload": Doing.UPLOAD,
    "UploadPart": Doing.UPLOAD,
    "UploadPartCopy": Doing.UPLOAD,
    "CompleteMultipartUpload": Doing.UPLOAD,
    "DeleteObject": Doing.DELETE,
    "DeleteObjects": Doing.DELETE,
    "AbortMultipartUpload": Doing.DELETE,
    "ListObjects": Doing.LIST,
    "ListObjectsV2": Doing.LIST,
    "ListMultipartUploads": Doing.LIST,
    "HeadBucket": Doing.LIST,
    "GetBucketLocation": Doing.LOOK_AT_BUCKET,
    "GetBucketLifecycleConfiguration": Doing.LOOK_AT_BUCKET,
    "PutBucketLifecycleConfiguration": Doing.CHANGE_BUCKET,
    "AddJobFlowSteps": Doing.SUBMIT_STEP,
    "DescribeStep": Doing.POLL_STEP,
    "ListSteps": Doing.POLL_STEP,
    "CancelSteps": Doing.CANCEL_STEP,
    "DescribeCluster": Doing.LOOK_AT_CLUSTER,
    "ListInstanceGroups": Doing.LOOK_AT_CLUSTER,
    "RunJobFlow": Doing.START_CLUSTER,
    "AddTags": Doing.START_CLUSTER,
    "TerminateJobFlows": Doing.END_CLUSTER,
    "GetDatabase": Doing.FETCH_SCHEMA,
    "GetDatabases": Doing.FETCH_SCHEMA,
    "GetTable": Doing.FETCH_SCHEMA,
    "GetTables": Doing.FETCH_SCHEMA,
    "GetTableVersions": Doing.FETCH_SCHEMA,
    "GetPartition": Doing.FETCH_SCHEMA,
    "GetPartitions": Doing.FETCH_SCHEMA,
    "BatchGetPartition": Doing.FETCH_SCHEMA,
    "CreateDatabase": Doing.CREATE_SCHEMA,
    "CreateTable": Doing.CREATE_SCHEMA,
    "CreatePartition": Doing.CREATE_SCHEMA,
    "BatchCreatePartition": Doing.CREATE_SCHEMA,
    "UpdateTable": Doing.CHANGE_SCHEMA,
    "UpdatePartition": Doing.CHANGE_SCHEMA,
    "BatchUpdatePartition": Doing.CHANGE_SCHEMA,
    "DeletePartition": Doing.DELETE_TABLE,
    "BatchDeletePartition": Doing.DELETE_TABLE,
    "DeleteTable": Doing.DELETE_TABLE,
    "BatchDeleteTable": Doing.DELETE_TABLE,
    "DeleteTableVersion": Doing.DELETE_TABLE,
    "BatchDeleteTableVersion": Doing.DELETE_TABLE,
    "DeleteDatabase": Doing.DELETE_TABLE,
    "Publish": Doing.PUBLISH,
    "GetTopicAttributes": Doing.LOOK_AT_TOPIC,
    "AssumeRole": Doing.ASSUME_ROLE,
}


def doing_of(operation: str, key: str) -> Doing | None:
    """What a call was made for; what goes to staging is told apart from what stays."""
    found = _BY_OPERATION.get(operation)
    staging = "segment-stage" in key.split("/")
    return Doing.STAGE if found is Doing.UPLOAD and staging else found


GRANT = "Grant it with this policy statement: "
_MUTE = ("", "access denied", "forbidden", "no response body")
_DENY = re.compile(r"with an explicit deny in an? ([\w -]+)")


def insufficient(answer: Answer, doing: Doing, resource: str) -> InsufficientPermissions:
    """What was refused, on what, to whom, and the statement to add to whose policy."""
    bucket, key = place_in_s3(answer, resource)
    action = answer.action or action_of(doing.service, answer.operation) or doing.actions[0]
    arn = answer.resource or _arn(action, doing, bucket, key, resource)
    words = doing.words.format(bucket=bucket or "?", place=resource or "of the settings")
    who = f" to {answer.who}" if answer.who else ""
    told = f"Datalake does not have permissions to {words}: {action} on {arn} was refused{who}."
    granted = statement(*_needed(answer, action, arn, bucket, resource))
    remedies = [*_remarks(answer, doing), GRANT + as_text(granted)]
    return InsufficientPermissions(" ".join([told, *remedies]))


def granted_by(message: str) -> dict[str, object] | None:
    """The statement that a message ends with."""
    _, found, text = message.partition(GRANT)
    granted: dict[str, object] = json.loads(text) if found else {}
    return granted or None


def place_in_s3(answer: Answer, resource: str) -> tuple[str, str]:
    """Bucket and key, from the answer or from who made the call."""
    if answer.bucket:
        return answer.bucket, answer.key
    bucket, _, key = resource.removeprefix("s3://").partition("/")
    return bucket, key


def _arn(action: str, doing: Doing, bucket: str, key: str, resource: str) -> str:
    if resource.startswith("arn:"):
        return resource
    if doing.service == "s3":
        return object_arn(action, bucket, key)
    if doing.service == "elasticmapreduce":
        return f"arn:aws:elasticmapreduce:*:*:cluster/{resource or '*'}"
    if doing.service == "glue":
        database, _, table = resource.partition(".")
        if table:
            return f"arn:aws:glue:*:*:table/{database}/{table}"
        return f"arn:aws:glue:*:*:database/{database}" if database else "arn:aws:glue:*:*:catalog"
    return resource or "*"


def _needed(
    answer: Answer, action: str, arn: str, bucket: str, resource: str
) -> tuple[list[str], list[str]]:
    """All that the call takes: AWS names one thing at a time, and would refuse the next."""
    if action == "s3:GetObject" and answer.resource is None and bucket:
        # Without the right to list, S3 refuses to say that an object is not there.
        return [action, "s3:ListBucket"], [grant_arn(arn), f"arn:aws:s3:::{bucket}"]
    if answer.operation == "CopyObject":
        return [action, "s3:GetObject"], [grant_arn(arn)]
    if action.startswith("glue:"):
        return [action], _glue_arns(arn, resource)
    return [action], [grant_arn(arn)]


def _glue_arns(arn: str, resource: str) -> list[str]:
    """Glue asks for the right on the catalog, the database and the table, each."""
    home, _, what = arn.rpartition(":")
    database = resource.partition(".")[0] or [*what.split("/"), ""][1]
    if not database or resource.startswith("arn:"):
        return [f"{home}:catalog", f"{home}:database/*", f"{home}:table/*"]
    return [f"{home}:catalog", f"{home}:database/{database}", f"{home}:table/{database}/*"]


def _remarks(answer: Answer, doing: Doing) -> list[str]:
    remarks: list[str] = []
    if answer.action is None and answer.said.strip(".").lower() not in _MUTE:
        remarks.append(f"AWS says: {answer.said.rstrip('.')}.")
    if "Lake Formation" in answer.said:
        remarks.append("Lake Formation governs the catalog: grant it there, besides the policy.")
    if deny := _DENY.search(answer.said):
        remarks.append(f"An explicit deny in a {deny[1].strip()} is in the way: take it out first.")
    if doing.service == "elasticmapreduce" and doing is not Doing.START_CLUSTER:
        remarks.append("The cluster must be in this account and region, with tag vendor=segment.")
    return remarks
