"""Every permission that can be missing: a real refusal, and what people are told of it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from pyarrow import fs as pafs

from eventlake.aws.permissions import granted_by
from eventlake.aws.refusals import as_lake_error, aws_call
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
    """What is done, by which call, with which right missing, and what is told."""

    resource: str
    call: Callable[[Any], Any]
    begins: str
    action: str
    arn: str
    grants: list[str] | str | None = None  # the resources of the statement; None: the arn
    actions: list[str] | None = None  # of the statement, where it has more than the one
    condition: dict[str, Any] | None = None

    @property
    def id(self) -> str:
        return f"{self.action}-{self.begins.removeprefix(NO).split()[0]}"

    @property
    def service(self) -> str:
        prefix = self.action.partition(":")[0]
        return "emr" if prefix == "elasticmapreduce" else prefix

    @property
    def statement(self) -> dict[str, Any]:
        told: dict[str, Any] = {
            "Effect": "Allow",
            "Action": self.actions or self.action,
            "Resource": self.grants or self.arn,
        }
        return {**told, "Condition": self.condition} if self.condition else told


def s3(key: str, begins: str, action: str, call: Callable[[Any], Any], **more: Any) -> Refused:
    arn = f"{BUCKET_ARN}/{key}" if key else BUCKET_ARN
    folder = f"{BUCKET_ARN}/{key.split('/')[0]}/*" if key else None
    return Refused(f"{LAKE}/{key}", call, begins, action, arn, **{"grants": folder, **more})


def glue(begins: str, action: str, call: Callable[[Any], Any]) -> Refused:
    arn = f"{GLUE}:table/ios_prod/track_order"
    return Refused(TABLE, call, begins, f"glue:{action}", arn, GLUE_ARNS)


def emr(begins: str, action: str, call: Callable[[Any], Any]) -> Refused:
    action = f"elasticmapreduce:{action}"
    return Refused(CLUSTER, call, begins, action, EMR_ARN, condition=TAGGED)


NO = "Datalake does not have permissions to "
FETCH = f"{NO}fetch schema information from Glue catalog: "
CREATE = f"{NO}create tables in Glue catalog: "
CHANGE = f"{NO}change tables of Glue catalog: "
DROP = f"{NO}delete table from Glue catalog: "
LISTED = [f"{BUCKET_ARN}/segment-logs/*", BUCKET_ARN]
PARTITION: dict[str, Any] = {"Values": ["2026-10-01"]}
IN_TABLE = {"DatabaseName": "ios_prod", "TableName": "track_order"}

REFUSALS = [
    s3(
        STAGED,
        f"{NO}upload staging data to S3 bucket {LAKE}: ",
        "s3:PutObject",
        lambda s3: s3.put_object(Bucket=LAKE, Key=STAGED, Body=b""),
    ),
    s3(
        RAW,
        f"{NO}download objects from S3 bucket {LAKE}: ",
        "s3:GetObject",
        lambda s3: s3.get_object(Bucket=LAKE, Key=RAW),
        actions=["s3:GetObject", "s3:ListBucket"],
        grants=LISTED,
    ),
    s3(
        DATA,
        f"{NO}upload objects to S3 bucket {LAKE}: ",
        "s3:PutObject",
        lambda s3: s3.put_object(Bucket=LAKE, Key=DATA, Body=b""),
    ),
    s3(
        DATA,
        f"{NO}upload objects to S3 bucket {LAKE}: ",
        "s3:PutObject",
        lambda s3: s3.create_multipart_upload(Bucket=LAKE, Key=DATA),
    ),
    s3(
        DATA,
        f"{NO}delete objects from S3 bucket {LAKE}: ",
        "s3:DeleteObject",
        lambda s3: s3.delete_object(Bucket=LAKE, Key=DATA),
    ),
    s3(
        "",
        f"{NO}list objects of S3 bucket {LAKE}: ",
        "s3:ListBucket",
        lambda s3: s3.list_objects_v2(Bucket=LAKE),
    ),
    emr(
        f"{NO}submit an EMR job to cluster {CLUSTER}: ",
        "AddJobFlowSteps",
        lambda emr: emr.add_job_flow_steps(JobFlowId=CLUSTER, Steps=[STEP]),
    ),
    emr(
        f"{NO}check the status of an EMR job on cluster {CLUSTER}: ",
        "DescribeStep",
        lambda emr: emr.describe_step(ClusterId=CLUSTER, StepId="s-1"),
    ),
    emr(
        f"{NO}cancel an EMR job on cluster {CLUSTER}: ",
        "CancelSteps",
        lambda emr: emr.cancel_steps(ClusterId=CLUSTER, StepIds=["s-1"]),
    ),
    emr(
        f"{NO}look at EMR cluster {CLUSTER}: ",
        "DescribeCluster",
        lambda emr: emr.describe_cluster(ClusterId=CLUSTER),
    ),
    emr(
        f"{NO}terminate EMR cluster {CLUSTER}: ",
        "TerminateJobFlows",
        lambda emr: emr.terminate_job_flows(JobFlowIds=[CLUSTER]),
    ),
    Refused(
        "",
        lambda emr: emr.run_job_flow(**CONFIG),
        f"{NO}start an EMR cluster: ",
        "elasticmapreduce:RunJobFlow",
        "arn:aws:elasticmapreduce:*:*:cluster/*",
        condition={"StringEquals": {"aws:RequestTag/vendor": "segment"}},
    ),
    *(
        glue(FETCH, action, call)
        for action, call in {
            "GetDatabase": lambda glue: glue.get_database(Name="ios_prod"),
            "GetTable": lambda glue: glue.get_table(DatabaseName="ios_prod", Name="track_order"),
            "GetTables": lambda glue: glue.get_tables(DatabaseName="ios_prod"),
            "GetPartitions": lambda glue: glue.get_partitions(**IN_TABLE),
            "BatchGetPartition": lambda glue: glue.batch_get_partition(
                **IN_TABLE, PartitionsToGet=[PARTITION]
            ),
        }.items()
    ),
    *(
        glue(CREATE, action, call)
        for action, call in {
            "CreateDatabase": lambda glue: glue.create_database(DatabaseInput={"Name": "x"}),
            "CreateTable": lambda glue: glue.create_table(
                DatabaseName="ios_prod", TableInput={"Name": "track_order"}
            ),
            "BatchCreatePartition": lambda glue: glue.batch_create_partition(
                **IN_TABLE, PartitionInputList=[PARTITION]
            ),
        }.items()
    ),
    *(
        glue(CHANGE, action, call)
        for action, call in {
            "UpdateTable": lambda glue: glue.update_table(
                DatabaseName="ios_prod", TableInput={"Name": "track_order"}
            ),
            "UpdatePartition": lambda glue: glue.update_partition(
                **IN_TABLE, PartitionValueList=["2026-10-01"], PartitionInput=PARTITION
            ),
        }.items()
    ),
    *(
        glue(DROP, action, call)
        for action, call in {
            "DeleteTable": lambda glue: glue.delete_table(
                DatabaseName="ios_prod", Name="track_order"
            ),
            "BatchDeletePartition": lambda glue: glue.batch_delete_partition(
                **IN_TABLE, PartitionsToDelete=[PARTITION]
            ),
        }.items()
    ),
]


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case.id)
def test_a_refusal_tells_the_action_the_resource_and_the_statement(
    aws: AwsServer, case: Refused
) -> None:
    aws.bucket(LAKE)
    client = User(aws, denied=[case.action]).client(case.service)
    with enforced(aws), pytest.raises(InsufficientPermissions) as caught, aws_call(case.resource):
        case.call(client)
    told = str(caught.value)
    assert told.startswith(f"{case.begins}{case.action} on {case.arn} was refused")
    assert granted_by(told) == case.statement
    assert caught.value.error_code == "Segment.InsufficientPermissions"
    assert "\n" not in told
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


@pytest.mark.parametrize(
    ("call", "denied", "begins", "on"),
    [
        (read, "s3:GetObject", "download objects from", f"s3:GetObject on {BUCKET_ARN}/{RAW}"),
        (
            lambda fs: write(fs, DATA),
            "s3:PutObject",
            "upload objects to",
            f"s3:PutObject on {BUCKET_ARN}/{DATA}",
        ),
        (
            lambda fs: write(fs, STAGED),
            "s3:PutObject",
            "upload staging data to",
            f"s3:PutObject on {BUCKET_ARN}/{STAGED}",
        ),
        (
            lambda fs: fs.delete_file(f"{LAKE}/{DATA}"),
            "s3:DeleteObject",
            "delete objects from",
            f"s3:DeleteObject on {BUCKET_ARN}/{DATA}",
        ),
        (listing, "s3:ListBucket", "list objects of", f"s3:ListBucket on {BUCKET_ARN}"),
        (
            lambda fs: fs.copy_file(f"{LAKE}/{DATA}", f"{LAKE}/{STAGED}"),
            "s3:PutObject",
            "upload staging data to",
            f"s3:PutObject on {BUCKET_ARN}/{STAGED}",
        ),
    ],
    ids=["read", "write", "stage", "delete", "list", "copy"],
)
def test_what_arrow_says_of_a_refusal_is_understood_without_being_asked(
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
    told = str(as_lake_error(caught.value))
    assert told.startswith(f"{NO}{begins} S3 bucket {LAKE}: {on} was refused")
    with pytest.raises(InsufficientPermissions, match=begins), aws_call(LAKE):
        raise caught.value
