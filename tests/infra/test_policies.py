"""The policies grant what the code calls, and nothing else."""

import ast
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore import xform_name
from botocore.exceptions import ClientError

from eventlake.aws.access import AwsAccess
from eventlake.aws.permissions import OPERATIONS
from eventlake.rules.errors import InvalidSetting
from tests.support.aws.enforced import Become, actions, allows, enforced
from tests.support.aws.stack import DAGSTER, REGION, Stack, deploy
from tests.support.repo import ROOT
from tests.support.servers.aws import AwsServer, fresh_sessions

BUCKET = "arn:aws:s3:::lake-bucket"
CLUSTER = f"arn:aws:elasticmapreduce:{REGION}:123456789012:cluster/j-1A2B3C4D5E6F7"
APPLICATION = f"arn:aws:emr-serverless:{REGION}:123456789012:/applications/00f1a2b3c4d5e6f7"
JOB_RUN = f"{APPLICATION}/jobruns/00g1a2b3c4d5e6f7"
TABLE = f"arn:aws:glue:{REGION}:123456789012:table/ios_prod/identify"
OURS = {"elasticmapreduce__ResourceTag_S_vendor": "segment"}
ASKED = {"elasticmapreduce__RequestTag_S_vendor": "segment"}


@pytest.fixture(scope="module")
def stack(aws_server: AwsServer) -> Any:
    """Deployed once; the tests of this module only read it."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in aws_server.environment.items():
            patch.setenv(name, value)
        with fresh_sessions():
            aws_server.reset()
            deployed = deploy(aws_server, WithServerless="true")
            roles = [name for name in deployed.resources if name.endswith("Role")]
            yield {role: deployed.role_documents(role) for role in roles}


@pytest.mark.parametrize("role", ["LakeRole", "EmrServiceRole", "EmrInstanceRole", "JobRole"])
def test_actions_are_named_one_by_one(stack: dict[str, Any], role: str) -> None:
    granted = actions(stack[role])
    assert granted
    assert [action for action in granted if "*" in action or action.startswith("athena:")] == []


@pytest.mark.parametrize(
    ("action", "resource", "context"),
    [
        ("s3:GetObject", f"{BUCKET}/segment-logs/9IP56Shn6/1796083200000/a.gz", {}),
        ("s3:GetObject", f"{BUCKET}/logs/j-1/steps/s-1/stderr.gz", {}),
        ("s3:PutObject", f"{BUCKET}/segment-stage/9IP56Shn6/17/rows.arrow", {}),
        ("s3:PutObject", f"{BUCKET}/segment-data/data/9IP56Shn6/a.parquet", {}),
        ("s3:DeleteObject", f"{BUCKET}/sync_tracking_datasets/W/S/17/metadata.json", {}),
        ("s3:ListBucket", BUCKET, {"s3__prefix": "segment-logs/9IP56Shn6/"}),
        ("s3:ListBucketMultipartUploads", BUCKET, {}),
        ("glue:CreateDatabase", f"arn:aws:glue:{REGION}:123456789012:catalog", {}),
        ("glue:UpdateTable", TABLE, {}),
        ("elasticmapreduce:AddJobFlowSteps", CLUSTER, OURS),
        ("elasticmapreduce:TerminateJobFlows", CLUSTER, OURS),
        ("elasticmapreduce:RunJobFlow", CLUSTER, ASKED),
        ("elasticmapreduce:AddTags", CLUSTER, ASKED),
        ("emr-serverless:StartJobRun", APPLICATION, {"aws__ResourceTag_S_vendor": "segment"}),
        ("emr-serverless:TagResource", JOB_RUN, {"aws__RequestTag_S_vendor": "segment"}),
        ("emr-serverless:GetJobRun", JOB_RUN, {"aws__ResourceTag_S_vendor": "segment"}),
        ("cloudwatch:PutMetricData", "*", {"cloudwatch__namespace": "Eventlake"}),
    ],
)
def test_the_role_may_do_what_a_sync_does(
    stack: dict[str, Any], action: str, resource: str, context: dict[str, str]
) -> None:
    assert allows(stack["LakeRole"], action, resource, **context)


@pytest.mark.parametrize(
    ("action", "resource", "context"),
    [
        ("s3:PutObject", f"{BUCKET}/segment-logs/9IP56Shn6/1796083200000/a.gz", {}),
        ("s3:DeleteObject", f"{BUCKET}/segment-logs/9IP56Shn6/1796083200000/a.gz", {}),
        ("s3:PutObject", f"{BUCKET}/logs/j-1/steps/s-1/stderr.gz", {}),
        ("s3:GetObject", f"{BUCKET}/finance/book.csv", {}),
        ("s3:PutObject", f"{BUCKET}/segment-data-of-others/x", {}),
        ("s3:PutObject", "arn:aws:s3:::lake-bucket-2/segment-data/x", {}),
        ("s3:ListBucket", BUCKET, {"s3__prefix": "finance/"}),
        ("s3:ListBucket", BUCKET, {"s3__prefix": ""}),
        ("s3:ListBucket", BUCKET, {}),
        ("s3:PutLifecycleConfiguration", BUCKET, {}),
        ("s3:DeleteBucket", BUCKET, {}),
        ("glue:StartJobRun", f"arn:aws:glue:{REGION}:123456789012:job/etl", {}),
        ("glue:DeleteDatabase", f"arn:aws:glue:{REGION}:123456789012:database/ios_prod", {}),
        ("elasticmapreduce:AddJobFlowSteps", CLUSTER, {}),
        ("elasticmapreduce:TerminateJobFlows", CLUSTER, dict.fromkeys(OURS, "them")),
        ("elasticmapreduce:RunJobFlow", CLUSTER, {}),
        ("elasticmapreduce:AddTags", CLUSTER, {}),
        ("emr-serverless:StartJobRun", APPLICATION, {}),
        ("emr-serverless:CancelJobRun", JOB_RUN, {"aws__ResourceTag_S_vendor": "others"}),
        ("emr-serverless:DeleteApplication", APPLICATION, {"aws__ResourceTag_S_vendor": "segment"}),
        ("cloudwatch:PutMetricData", "*", {"cloudwatch__namespace": "AWS/Billing"}),
        ("iam:PassRole", DAGSTER, {"iam__PassedToService": "ec2.amazonaws.com"}),
    ],
)
def test_the_role_may_do_nothing_else(
    stack: dict[str, Any], action: str, resource: str, context: dict[str, str]
) -> None:
    assert not allows(stack["LakeRole"], action, resource, **context)


def test_the_cluster_may_load_and_log_but_not_make_clusters(stack: dict[str, Any]) -> None:
    cluster = stack["EmrInstanceRole"]
    assert allows(cluster, "s3:PutObject", f"{BUCKET}/logs/j-1/node/syslog.gz")
    assert allows(cluster, "s3:PutObject", f"{BUCKET}/segment-data/data/9IP56Shn6/a.parquet")
    assert allows(cluster, "glue:BatchCreatePartition", TABLE)
    assert not allows(cluster, "s3:PutObject", f"{BUCKET}/segment-logs/9IP56Shn6/a.gz")
    assert not {a for a in actions(cluster) if a.startswith(("elasticmapreduce:", "iam:", "sns:"))}


def test_roles_are_passed_to_their_service_alone(aws: AwsServer) -> None:
    stack = deploy(aws, WithServerless="true")
    documents = stack.role_documents("LakeRole")
    iam = stack.client("iam")
    arns = {
        role: iam.get_role(RoleName=stack.resources[role])["Role"]["Arn"]
        for role in ("EmrServiceRole", "EmrInstanceRole", "JobRole")
    }
    names = ("elasticmapreduce", "ec2", "emr-serverless", "lambda")
    services = [f"{name}.amazonaws.com" for name in names]
    assert [
        (role, service)
        for role, arn in arns.items()
        for service in services
        if allows(documents, "iam:PassRole", arn, iam__PassedToService=service)
    ] == [
        ("EmrServiceRole", "elasticmapreduce.amazonaws.com"),
        ("EmrInstanceRole", "ec2.amazonaws.com"),
        ("JobRole", "emr-serverless.amazonaws.com"),
    ]


def test_the_role_trusts_the_given_principals_with_the_external_ids(aws: AwsServer) -> None:
    stack = deploy(aws)
    role = stack.client("iam").get_role(RoleName=stack.resources["LakeRole"])["Role"]
    [statement] = role["AssumeRolePolicyDocument"]["Statement"]
    ids = {"StringEquals": {"sts:ExternalId": ["P3IMS7SBDH", "9IP56Shn6"]}}
    who = {"Effect": "Allow", "Principal": {"AWS": [DAGSTER]}}
    assert statement == who | {"Action": "sts:AssumeRole", "Condition": ids}


@pytest.fixture
def dagster(aws: AwsServer, become: Become) -> Stack:
    """The stack; it trusts the user of this process."""
    return deploy(aws, TrustedPrincipals=become().arn)


def test_the_role_can_write_only_the_folders_of_the_lake(aws: AwsServer, dagster: Stack) -> None:
    s3 = AwsAccess(REGION, dagster.outputs["LakeRoleArn"], "9IP56Shn6").client("s3")
    with enforced(aws):
        s3.put_object(Bucket="lake-bucket", Key="segment-data/_state/x", Body=b"1")
        assert s3.get_object(Bucket="lake-bucket", Key="segment-data/_state/x")["Body"].read()
        s3.delete_object(Bucket="lake-bucket", Key="segment-data/_state/x")
        for key in ("segment-logs/9IP56Shn6/a.gz", "finance/book.csv"):
            with pytest.raises(ClientError, match="AccessDenied"):
                s3.put_object(Bucket="lake-bucket", Key=key, Body=b"1")


def test_a_wrong_external_id_is_refused(aws: AwsServer, dagster: Stack) -> None:
    access = AwsAccess(REGION, dagster.outputs["LakeRoleArn"], "guessed")
    with enforced(aws), pytest.raises(InvalidSetting, match="External ID is invalid"):
        access.credentials()


# A client's name, and what the actions of its service begin with.
SERVICES = {
    "s3": "s3",
    "glue": "glue",
    "emr": "elasticmapreduce",
    "emr-serverless": "emr-serverless",
}

# Done with an administrator's credentials, not with the role.
NOT_BY_THE_ROLE = {"eventlake/aws/lifecycle.py"}
# Told by an answer's header, also where the answer is a refusal.
NEEDS_NOTHING = {"head_bucket"}
# What a call takes besides itself.
TAKES_ALSO = {
    "run_job_flow": {
        "elasticmapreduce:AddTags",
        "elasticmapreduce:PutAutoTerminationPolicy",
        "elasticmapreduce:PutManagedScalingPolicy",
    },
    "copy_object": {"s3:GetObject"},
    "start_job_run": {"emr-serverless:TagResource"},
}
# Granted by the policy that people know from before, whether this release uses it or not.
GLUE = """
    BatchCreatePartition BatchDeletePartition BatchDeleteTable BatchDeleteTableVersion
    BatchGetPartition CreateDatabase CreatePartition CreateTable DeletePartition DeleteTable
    DeleteTableVersion GetPartition GetPartitions GetTable GetTableVersion GetTableVersions
    GetTables UpdatePartition UpdateTable
"""
EMR = "AddJobFlowSteps CancelSteps DescribeCluster DescribeStep RunJobFlow TerminateJobFlows"
KNOWN_FROM_BEFORE = {f"glue:{name}" for name in GLUE.split()} | {
    f"elasticmapreduce:{name}" for name in EMR.split()
}


@cache
def operations() -> dict[str, str]:
    """What methods of clients need: `put_object` → `s3:PutObject`."""
    session = botocore.session.get_session()
    return {
        xform_name(name): OPERATIONS[name].action if name in OPERATIONS else f"{prefix}:{name}"
        for service, prefix in SERVICES.items()
        for name in session.get_service_model(service).operation_names
    }


def called(module: Path) -> Iterator[str]:
    """Methods of AWS's clients that a module calls, or whose names it passes on."""
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        name = ""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            # The module `socket` has a function of the name of one of Glue's operations.
            name = "" if ast.unparse(node.func.value) == "socket" else node.func.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = node.value
        if name in operations():
            yield name


def all_calls(except_modules: Collection[str] = ()) -> set[str]:
    return {
        name
        for package in ("eventlake", "spark_resources", "datalake_assets")
        for module in sorted((ROOT / package).rglob("*.py"))
        if str(module.relative_to(ROOT)) not in except_modules
        for name in called(module)
    }


@pytest.fixture(scope="module")
def used() -> set[str]:
    """The actions that the role needs."""
    calls = all_calls(NOT_BY_THE_ROLE) - NEEDS_NOTHING
    return {operations()[name] for name in calls}.union(*(TAKES_ALSO.get(c, set()) for c in calls))


@pytest.fixture
def granted(stack: dict[str, Any]) -> set[str]:
    return actions(stack["LakeRole"])


def of(service: str, among: set[str]) -> set[str]:
    return {action for action in among if action.startswith(f"{service}:")}


def test_of_the_bucket_exactly_what_is_used_is_granted(used: set[str], granted: set[str]) -> None:
    assert of("s3", granted) == of("s3", used)


@pytest.mark.parametrize("service", ["glue", "elasticmapreduce", "emr-serverless"])
def test_every_call_to_glue_and_emr_is_granted(
    service: str, used: set[str], granted: set[str]
) -> None:
    assert of(service, used) - granted == set()
    assert of(service, granted) == of(service, used | KNOWN_FROM_BEFORE)


def test_nothing_is_granted_of_other_services_but_roles_and_alerts(granted: set[str]) -> None:
    others = granted.difference(*(of(service, granted) for service in SERVICES.values()))
    assert others == {"iam:PassRole", "sns:Publish", "cloudwatch:PutMetricData"}


def test_the_cluster_may_do_to_bucket_and_catalog_what_the_role_may(stack: dict[str, Any]) -> None:
    role, cluster = actions(stack["LakeRole"]), actions(stack["EmrInstanceRole"])
    assert of("s3", cluster) == of("s3", role)
    assert of("glue", cluster) == of("glue", role) | {"glue:GetUserDefinedFunctions"}
    jobs = actions(stack["JobRole"])
    assert jobs == of("s3", role) | of("glue", role)


def test_every_call_has_words_for_its_refusal() -> None:
    assert all_calls() - {xform_name(name) for name in OPERATIONS} == set()


def test_calls_are_found_however_they_are_written(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text('client.put_object()\ncalls.pages("get_tables")\nown.put_things("x")\n')
    assert sorted(called(module)) == ["get_tables", "put_object"]
