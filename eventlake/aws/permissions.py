"""Missing permissions: API operations, their IAM actions, and policy statements that grant them."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from eventlake.aws.answers import Answer
from eventlake.rules import paths
from eventlake.rules.errors import InsufficientPermissions

_UPLOAD = "upload object to S3 Bucket {bucket}"
_LIST = "list objects of S3 Bucket {bucket}"
_DELETE = "delete S3 objects from S3 Bucket {bucket}"
_INSPECT_BUCKET = "read the settings of S3 Bucket {bucket}"
_START_CLUSTER = "start an EMR cluster"
# Users filter messages by their beginning, so they begin as those of the original product.
_NO = "Eventlake does not have permissions to"
_NO_STAGING = (
    "Eventlake was unable to upload staging data to your S3 Bucket due to a lack of sufficient "
    "permissions"
)


@dataclass(frozen=True, slots=True)
class Operation:
    """An API operation: how error messages describe it, and the IAM action it requires."""

    words: str  # completes "does not have permissions to ..."
    action: str

    @property
    def service(self) -> str:
        """The service prefix of IAM actions."""
        return self.action.partition(":")[0]

    @property
    def service_name(self) -> str:
        return SERVICE_NAMES[self.service]


SERVICE_NAMES = {
    "s3": "S3",
    "elasticmapreduce": "EMR",
    "emr-serverless": "EMR Serverless",
    "glue": "Glue",
    "sts": "STS",
    "sns": "SNS",
}
# Words, operations, and the IAM action of S3 operations whose action has another name. Operations
# of the same purpose share their words, because users filter messages by them.
_TABLE: dict[str, list[tuple[str, str, str]]] = {
    "s3": [
        ("download object from S3 Bucket {bucket}", "GetObject HeadObject", "GetObject"),
        (
            _UPLOAD,
            "PutObject CopyObject CreateMultipartUpload UploadPart UploadPartCopy "
            "CompleteMultipartUpload",
            "PutObject",
        ),
        (_DELETE, "DeleteObject DeleteObjects", "DeleteObject"),
        (_DELETE, "AbortMultipartUpload", ""),
        (_LIST, "ListObjects ListObjectsV2 HeadBucket", "ListBucket"),
        (_LIST, "ListMultipartUploads", "ListBucketMultipartUploads"),
        (_INSPECT_BUCKET, "GetBucketLocation GetBucketVersioning", ""),
        (_INSPECT_BUCKET, "GetBucketLifecycleConfiguration", "GetLifecycleConfiguration"),
        (
            "change the lifecycle of S3 Bucket {bucket}",
            "PutBucketLifecycleConfiguration",
            "PutLifecycleConfiguration",
        ),
    ],
    "elasticmapreduce": [
        ("submit an EMR job to cluster {resource}", "AddJobFlowSteps", ""),
        ("check the status of EMR Job on EMR Cluster {resource}", "DescribeStep ListSteps", ""),
        ("cancel an EMR job on cluster {resource}", "CancelSteps", ""),
        (
            "read EMR cluster {resource}",
            "DescribeCluster ListInstanceGroups ListInstanceFleets ListBootstrapActions "
            "GetManagedScalingPolicy",
            "",
        ),
        (_START_CLUSTER, "RunJobFlow AddTags", ""),
        ("terminate EMR cluster {resource}", "TerminateJobFlows", ""),
    ],
    "emr-serverless": [
        ("submit an EMR job to application {resource}", "StartJobRun", ""),
        ("check the status of an EMR job on application {resource}", "GetJobRun", ""),
        ("cancel an EMR job on application {resource}", "CancelJobRun", ""),
        ("read EMR Serverless application {resource}", "GetApplication", ""),
    ],
    "glue": [
        (
            "fetch schema information from Glue catalog",
            "GetDatabase GetDatabases GetTable GetTables GetTableVersion GetTableVersions "
            "GetPartition GetPartitions BatchGetPartition",
            "",
        ),
        (
            "create tables in Glue catalog",
            "CreateDatabase CreateTable CreatePartition BatchCreatePartition",
            "",
        ),
        (
            "change tables of Glue catalog",
            "UpdateTable UpdatePartition BatchUpdatePartition",
            "",
        ),
        (
            "delete table from Glue Catalog",
            "DeletePartition BatchDeletePartition DeleteTable BatchDeleteTable "
            "DeleteTableVersion BatchDeleteTableVersion DeleteDatabase",
            "",
        ),
    ],
    "sns": [
        ("publish to SNS topic {resource}", "Publish", ""),
        ("read SNS topic {resource}", "GetTopicAttributes", ""),
    ],
    "sts": [("assume role {resource}", "AssumeRole", "")],
}
OPERATIONS = {
    name: Operation(words, f"{service}:{action or name}")
    for service, rows in _TABLE.items()
    for words, names, action in rows
    for name in names.split()
}


def object_arn(action: str, bucket: str, key: str) -> str:
    """The resource of an S3 action: a bucket or an object."""
    on_bucket = "Bucket" in action or "Lifecycle" in action or not key
    return f"arn:aws:s3:::{bucket}" if on_bucket else f"arn:aws:s3:::{bucket}/{key}"


def grant_arn(arn: str) -> str:
    """The resource for a statement: for an object, the folder of the lake that contains it."""
    bucket, _, key = arn.removeprefix("arn:aws:s3:::").partition("/")
    if not arn.startswith("arn:aws:s3:::") or not key:
        return arn
    parts = key.split("/")
    ours = next((n for n, part in enumerate(parts) if part in paths.OURS), None)
    folder = "" if ours is None else "/".join(parts[: ours + 1]) + "/"
    return f"arn:aws:s3:::{bucket}/{folder}*"


def statement(actions: Sequence[str], resources: Sequence[str]) -> dict[str, object]:
    """A statement that can be added to a policy unchanged."""
    granted: dict[str, object] = {
        "Effect": "Allow",
        "Action": list(actions) if len(actions) > 1 else actions[0],
        "Resource": list(resources) if len(resources) > 1 else resources[0],
    }
    if actions[0].startswith("elasticmapreduce:"):
        made = actions[0] == "elasticmapreduce:RunJobFlow"
        tag = "aws:RequestTag/vendor" if made else "elasticmapreduce:ResourceTag/vendor"
        granted["Condition"] = {"StringEquals": {tag: "segment"}}
    if actions[0].startswith("emr-serverless:"):
        granted["Condition"] = {"StringEquals": {"aws:ResourceTag/vendor": "segment"}}
    return granted


def as_text(granted: dict[str, object]) -> str:
    return json.dumps(granted, separators=(", ", ": "))


GRANT = "Grant it with this policy statement: "
_MUTE = ("", "access denied", "forbidden", "no response body")
_DENY = re.compile(r"with an explicit deny in an? ([\w -]+)")


def insufficient(answer: Answer, operation: Operation, resource: str) -> InsufficientPermissions:
    """The denied action, its resource and principal, and the policy statement that allows it."""
    bucket, key = bucket_and_key(answer, resource)
    action = answer.action or operation.action
    arn = answer.resource or _arn(action, operation, bucket, key, resource)
    words = operation.words.format(bucket=bucket or "?", resource=resource or "of the settings")
    problem = f"{_NO} {words}"
    if operation.words == _UPLOAD and "segment-stage" in key.split("/"):
        problem = f"{_NO_STAGING}: {bucket}"
    principal = f" to {answer.principal}" if answer.principal else ""
    denied = f"{problem}: {action} on {arn} was refused"
    granted = statement(*_needed(answer, action, arn, bucket, resource))
    remedies = [*_remarks(answer, operation), GRANT + as_text(granted)]
    return InsufficientPermissions(" ".join([f"{denied}{principal}.", *remedies]))


def granted_by(message: str) -> dict[str, object] | None:
    """The policy statement at the end of a message, if any."""
    _, found, text = message.partition(GRANT)
    granted: dict[str, object] = json.loads(text) if found else {}
    return granted or None


def bucket_and_key(answer: Answer, resource: str) -> tuple[str, str]:
    """Bucket and key from the answer, else from the resource of the call."""
    if answer.bucket:
        return answer.bucket, answer.key
    bucket, _, key = resource.removeprefix("s3://").partition("/")
    return bucket, key


def _arn(action: str, operation: Operation, bucket: str, key: str, resource: str) -> str:
    if resource.startswith("arn:"):
        return resource
    if operation.service == "s3":
        return object_arn(action, bucket, key)
    if operation.service == "elasticmapreduce":
        return f"arn:aws:elasticmapreduce:*:*:cluster/{resource or '*'}"
    if operation.service == "emr-serverless":
        return f"arn:aws:emr-serverless:*:*:/applications/{resource or '*'}"
    if operation.service == "glue":
        database, _, table = resource.partition(".")
        if table:
            return f"arn:aws:glue:*:*:table/{database}/{table}"
        return f"arn:aws:glue:*:*:database/{database}" if database else "arn:aws:glue:*:*:catalog"
    return resource or "*"


def _needed(
    answer: Answer, action: str, arn: str, bucket: str, resource: str
) -> tuple[list[str], list[str]]:
    """All actions and resources of the call; AWS reports only the first that is denied."""
    if action == "s3:GetObject" and answer.resource is None and bucket:
        # Without s3:ListBucket, S3 answers 403 instead of 404 for a missing object.
        return [action, "s3:ListBucket"], [grant_arn(arn), f"arn:aws:s3:::{bucket}"]
    if answer.operation == "CopyObject":
        return [action, "s3:GetObject"], [grant_arn(arn)]
    if action.startswith("glue:"):
        return [action], _glue_arns(arn, resource)
    if action.startswith("emr-serverless:"):
        application = "/".join(arn.split("/")[:3])
        return [action], [application, f"{application}/jobruns/*"]
    return [action], [grant_arn(arn)]


def _glue_arns(arn: str, resource: str) -> list[str]:
    """Glue requires the permission on the catalog, the database and the table."""
    home, _, what = arn.rpartition(":")
    database = resource.partition(".")[0] or [*what.split("/"), ""][1]
    if not database or resource.startswith("arn:"):
        return [f"{home}:catalog", f"{home}:database/*", f"{home}:table/*"]
    return [f"{home}:catalog", f"{home}:database/{database}", f"{home}:table/{database}/*"]


def _remarks(answer: Answer, operation: Operation) -> list[str]:
    remarks: list[str] = []
    if answer.action is None and answer.said.strip(".").lower() not in _MUTE:
        remarks.append(f"AWS says: {answer.said.rstrip('.')}.")
    if "Lake Formation" in answer.said:
        remarks.append("Lake Formation governs the catalog: grant it there, besides the policy.")
    if deny := _DENY.search(answer.said):
        remarks.append(f"An explicit deny in a {deny[1].strip()} is in the way: take it out first.")
    if operation.service == "elasticmapreduce" and operation.words != _START_CLUSTER:
        remarks.append("The cluster must be in this account and region, with tag vendor=segment.")
    if operation.service == "emr-serverless" and answer.action != "iam:PassRole":
        remarks.append("The application must have the tag vendor=segment.")
    return remarks
