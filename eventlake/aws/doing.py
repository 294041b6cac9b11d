"""What the lake does on AWS, as its errors tell it."""

from dataclasses import dataclass
from enum import Enum


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
