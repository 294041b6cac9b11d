"""Every permission that can be missing: a real refusal, and the message of the error."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from botocore import xform_name
from pyarrow import fs as pafs

from eventlake.aws.permissions import granted_by
from eventlake.aws.refusals import aws_call
from eventlake.clouds import as_lake_error
from eventlake.rules.errors import InsufficientPermissions
from tests.support.aws.enforced import User, enforced
from tests.support.servers.aws import REGION, AwsServer

LAKE = "lake-bucket"
BUCKET_ARN = f"arn:aws:s3:::{LAKE}"
RAW = "segment-logs/9IP56Shn6/1756684800000/a.gz"
STAGED = "segment-stage/9IP56Shn6/R1/a"
DATA = "segment-data/data/9IP56Shn6/a.parquet"
TABLE = "ios_prod.track_order"
GLUE = "arn:aws:glue:*:*"
GLUE_ARNS = [f"{GLUE}:catalog", f"{GLUE}:database/ios_prod", f"{GLUE}:table/ios_prod/*"]
CLUSTER = "j-3SXSUSDNPIS"
EMR_ARN = f"arn:aws:elasticmapreduce:*:*:cluster/{CLUSTER}"
TAGGED = {"StringEquals": {"elasticmapreduce:ResourceTag/vendor": "segment"}}
STEP = {"Name": "x", "HadoopJarStep": {"Jar": "command-runner.jar"}}
CONFIG = {"Name": "replay", "Instances": {"MasterInstanceType": "m5.xlarge", "InstanceCount": 1}}


@dataclass(frozen=True)
class Refused:
    """A request without its permission, and the refusal."""

    resource: str
    begins: str
    action: str
    arn: str
    params: dict[str, Any]
    method: str = ""  # by default that of the action
    grants: list[str] | str | None = None  # the resources of the statement; None: the arn
    actions: list[str] | None = None  # of the statement, where it has more than the one
    condition: dict[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return f"{self.action}-{self.begins.removeprefix(NO).split()[0]}"

    def send(self, user: User) -> None:
        service, action = self.action.split(":")
        client = user.client("emr" if service == "elasticmapreduce" else service)
        getattr(client, self.method or xform_name(action))(**self.params)

    @property
    def statement(self) -> dict[str, Any]:
        granted: dict[str, Any] = {
            "Effect": "Allow",
            "Action": self.actions or self.action,
            "Resource": self.grants or self.arn,
        }
        return {**granted, "Condition": self.condition} if self.condition else granted


def s3(key: str, begins: str, action: str, method: str = "", **given: Any) -> Refused:
    arn = f"{BUCKET_ARN}/{key}" if key else BUCKET_ARN
    folder = f"{BUCKET_ARN}/{key.split('/')[0]}/*" if key else None
    params = {"Bucket": LAKE} | ({"Key": key} if key else {}) | given
    return Refused(f"{LAKE}/{key}", begins, f"s3:{action}", arn, params, method, grants=folder)


def glue(begins: str, action: str, **params: Any) -> Refused:
    arn = f"{GLUE}:table/ios_prod/track_order"
    return Refused(TABLE, f"{NO}{begins}: ", f"glue:{action}", arn, params, grants=GLUE_ARNS)


def emr(begins: str, action: str, **params: Any) -> Refused:
    action = f"elasticmapreduce:{action}"
    begins = f"{NO}{begins} {CLUSTER}: "
    return Refused(CLUSTER, begins, action, EMR_ARN, params, condition=TAGGED)


def serverless(begins: str, action: str, **params: Any) -> Refused:
    begins = f"{NO}{begins} application {APPLICATION}: "
    arn = f"arn:aws:emr-serverless:*:*:/applications/{APPLICATION}"
    return Refused(
        APPLICATION,
        begins,
        f"emr-serverless:{action}",
        arn,
        {"applicationId": APPLICATION, **params},
        grants=[arn, f"{arn}/jobruns/*"],
        condition={"StringEquals": {"aws:ResourceTag/vendor": "segment"}},
    )


JOBS = "arn:aws:iam::123456789012:role/datalake-jobs"
APPLICATION = "00f1a2b3c4d5e6f7"
NO = "Eventlake does not have permissions to "
STAGE = (
    "Eventlake was unable to upload staging data to your S3 Bucket due to a lack of sufficient "
    f"permissions: {LAKE}: "
)
READ, WRITE, DELETE, LIST = (
    f"{NO}{words} S3 Bucket {LAKE}: "
    for words in (
        "download object from",
        "upload object to",
        "delete S3 objects from",
        "list objects of",
    )
)
FETCH = "fetch schema information from Glue catalog"
CREATE = "create tables in Glue catalog"
CHANGE = "change tables of Glue catalog"
DROP = "delete table from Glue Catalog"
LISTED = [f"{BUCKET_ARN}/segment-logs/*", BUCKET_ARN]
PARTITION: dict[str, Any] = {"Values": ["2026-10-01"]}
OLD_VALUES = {"PartitionValueList": ["2026-10-01"]}
ON_CLUSTER = {"ClusterId": CLUSTER}
IN_DATABASE = {"DatabaseName": "ios_prod"}
IN_TABLE = {**IN_DATABASE, "TableName": "track_order"}
INPUT = {**IN_DATABASE, "TableInput": {"Name": "track_order"}}

REFUSALS = [
    s3(STAGED, STAGE, "PutObject", Body=b""),
    replace(
        s3(RAW, READ, "GetObject"),
        actions=["s3:GetObject", "s3:ListBucket"],
        grants=LISTED,
    ),
    s3(DATA, WRITE, "PutObject", Body=b""),
    s3(DATA, WRITE, "PutObject", "create_multipart_upload"),
    s3(DATA, DELETE, "DeleteObject"),
    s3("", LIST, "ListBucket", "list_objects_v2"),
    emr("submit an EMR job to cluster", "AddJobFlowSteps", JobFlowId=CLUSTER, Steps=[STEP]),
    emr("check the status of EMR Job on EMR Cluster", "DescribeStep", **ON_CLUSTER, StepId="s-1"),
    emr("cancel an EMR job on cluster", "CancelSteps", **ON_CLUSTER, StepIds=["s-1"]),
    emr("read EMR cluster", "DescribeCluster", **ON_CLUSTER),
    emr("terminate EMR cluster", "TerminateJobFlows", JobFlowIds=[CLUSTER]),
    serverless("submit an EMR job to", "StartJobRun", executionRoleArn=JOBS),
    serverless("check the status of an EMR job on", "GetJobRun", jobRunId="00g1"),
    serverless("cancel an EMR job on", "CancelJobRun", jobRunId="00g1"),
    serverless("read EMR Serverless", "GetApplication"),
    Refused(
        "",
        f"{NO}start an EMR cluster: ",
        "elasticmapreduce:RunJobFlow",
        "arn:aws:elasticmapreduce:*:*:cluster/*",
        CONFIG,
        condition={"StringEquals": {"aws:RequestTag/vendor": "segment"}},
    ),
    glue(FETCH, "GetDatabase", Name="ios_prod"),
    glue(FETCH, "GetTable", **IN_DATABASE, Name="track_order"),
    glue(FETCH, "GetTables", **IN_DATABASE),
    glue(FETCH, "GetPartitions", **IN_TABLE),
    glue(FETCH, "BatchGetPartition", **IN_TABLE, PartitionsToGet=[PARTITION]),
    glue(CREATE, "CreateDatabase", DatabaseInput={"Name": "x"}),
    glue(CREATE, "CreateTable", **INPUT),
    glue(CREATE, "BatchCreatePartition", **IN_TABLE, PartitionInputList=[PARTITION]),
    glue(CHANGE, "UpdateTable", **INPUT),
    glue(CHANGE, "UpdatePartition", **IN_TABLE, **OLD_VALUES, PartitionInput=PARTITION),
    glue(DROP, "DeleteTable", **IN_DATABASE, Name="track_order"),
    glue(DROP, "BatchDeletePartition", **IN_TABLE, PartitionsToDelete=[PARTITION]),
]


ORIGINAL = (
    "was unable to upload staging data to your S3 Bucket due to a lack of sufficient permissions",
    "does not have permissions to download object from S3 Bucket",
    "does not have permissions to upload object to S3 Bucket",
    "does not have permissions to delete S3 objects from S3 Bucket",
    "does not have permissions to submit an EMR job to cluster",
    "does not have permissions to check the status of EMR Job on EMR Cluster",
    "does not have permissions to delete table from Glue Catalog",
    "does not have permissions to fetch schema information from Glue catalog",
)
"""Messages of the original product after its name: users filter by them."""


@pytest.mark.parametrize("sentence", ORIGINAL)
def test_messages_begin_as_those_of_the_original_product(sentence: str) -> None:
    assert any(case.begins.startswith(f"Eventlake {sentence}") for case in REFUSALS)


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case.id)
def test_a_refusal_names_action_resource_and_statement(aws: AwsServer, case: Refused) -> None:
    aws.bucket(LAKE)
    user = User(aws, denied=[case.action])
    with enforced(aws), pytest.raises(InsufficientPermissions) as caught, aws_call(case.resource):
        case.send(user)
    message = str(caught.value)
    assert message.startswith(f"{case.begins}{case.action} on {case.arn} was refused")
    assert granted_by(message) == case.statement
    assert caught.value.error_code == "Segment.InsufficientPermissions"
    assert "\n" not in message
    # Also without the resource, from the error or from its text.
    answer = caught.value.__cause__
    for error in (answer, RuntimeError(f"in a task:\n  {answer}\n\tat x")):
        unexpected = as_lake_error(error) if error else None
        assert isinstance(unexpected, InsufficientPermissions)
        assert case.action in str(unexpected)


def read(fs: pafs.FileSystem) -> None:
    with fs.open_input_stream(f"{LAKE}/{RAW}") as stream:
        stream.read()


def write(fs: pafs.FileSystem, key: str) -> None:
    with fs.open_output_stream(f"{LAKE}/{key}") as stream:
        stream.write(b"x")


def listing(fs: pafs.FileSystem) -> None:
    fs.get_file_info(pafs.FileSelector(f"{LAKE}/segment-logs", allow_not_found=True))


AT_DATA = f"{LAKE}/{DATA}"


def copy(fs: pafs.FileSystem) -> None:
    fs.copy_file(AT_DATA, f"{LAKE}/{STAGED}")


@pytest.mark.parametrize(
    ("call", "denied", "begins", "on"),
    [
        (read, "s3:GetObject", READ, f"/{RAW}"),
        (lambda fs: write(fs, DATA), "s3:PutObject", WRITE, f"/{DATA}"),
        (lambda fs: write(fs, STAGED), "s3:PutObject", STAGE, f"/{STAGED}"),
        (lambda fs: fs.delete_file(AT_DATA), "s3:DeleteObject", DELETE, f"/{DATA}"),
        (listing, "s3:ListBucket", LIST, ""),
        (copy, "s3:PutObject", STAGE, f"/{STAGED}"),
    ],
    ids=["read", "write", "stage", "delete", "list", "copy"],
)
def test_a_refusal_that_arrow_reports_names_its_action_and_resource(
    aws: AwsServer, call: Callable[[pafs.FileSystem], None], denied: str, begins: str, on: str
) -> None:
    aws.bucket(LAKE)
    for key in (DATA, RAW):
        aws.client("s3").put_object(Bucket=LAKE, Key=key, Body=b"x")
    user = User(aws, denied=[denied])
    fs = pafs.S3FileSystem(
        access_key=user.key,
        secret_key=user.secret,
        endpoint_override=aws.url.removeprefix("http://"),
        scheme="http",
        region=REGION,
    )
    with enforced(aws), pytest.raises(OSError, match="AWS Error ACCESS_DENIED") as caught:
        call(fs)
    refusal = f"{begins}{denied} on {BUCKET_ARN}{on} was refused"
    assert str(as_lake_error(caught.value)).startswith(refusal)
    with pytest.raises(InsufficientPermissions, match=re.escape(begins)), aws_call(LAKE):
        raise caught.value
