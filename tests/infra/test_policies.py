"""Who may do what: the roles as the stack makes them, judged as IAM judges."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from eventlake.aws.access import AwsAccess, forget_sessions
from eventlake.rules.errors import InvalidSetting
from tests.support.aws.enforced import User, enforced
from tests.support.aws.recorded import actions, allows
from tests.support.aws.stack import DAGSTER, REGION, Stack, deploy
from tests.support.servers.aws import AwsServer

BUCKET = "arn:aws:s3:::lake-bucket"
CLUSTER = f"arn:aws:elasticmapreduce:{REGION}:123456789012:cluster/j-1A2B3C4D5E6F7"
TABLE = f"arn:aws:glue:{REGION}:123456789012:table/ios_prod/identify"
OURS = {"elasticmapreduce__ResourceTag_S_vendor": "segment"}
ASKED = {"elasticmapreduce__RequestTag_S_vendor": "segment"}


@pytest.fixture(scope="module")
def stack(aws_server: AwsServer) -> Any:
    """Deployed once; the tests of this module only read it."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in aws_server.environment.items():
            patch.setenv(name, value)
        forget_sessions()
        aws_server.reset()
        deployed = deploy(aws_server)
        yield {role: deployed.role_documents(role) for role in deployed.resources if "Role" in role}
        forget_sessions()


ROLES = ("LakeRole", "EmrServiceRole", "EmrInstanceRole")


@pytest.mark.parametrize("role", ROLES)
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
        (
            "elasticmapreduce:TerminateJobFlows",
            CLUSTER,
            {"elasticmapreduce__ResourceTag_S_vendor": "them"},
        ),
        ("elasticmapreduce:RunJobFlow", CLUSTER, {}),
        ("elasticmapreduce:AddTags", CLUSTER, {}),
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
    stack = deploy(aws)
    documents = stack.role_documents("LakeRole")
    iam = stack.client("iam")
    arns = {
        role: iam.get_role(RoleName=stack.resources[role])["Role"]["Arn"]
        for role in ("EmrServiceRole", "EmrInstanceRole")
    }
    services = ("elasticmapreduce.amazonaws.com", "ec2.amazonaws.com", "lambda.amazonaws.com")
    assert [
        (role, service)
        for role, arn in arns.items()
        for service in services
        if allows(documents, "iam:PassRole", arn, iam__PassedToService=service)
    ] == [
        ("EmrServiceRole", "elasticmapreduce.amazonaws.com"),
        ("EmrInstanceRole", "ec2.amazonaws.com"),
    ]


def test_the_role_trusts_whom_it_is_told_to_with_the_external_ids(aws: AwsServer) -> None:
    stack = deploy(aws)
    role = stack.client("iam").get_role(RoleName=stack.resources["LakeRole"])["Role"]
    assert role["AssumeRolePolicyDocument"]["Statement"] == [
        {
            "Effect": "Allow",
            "Principal": {"AWS": [DAGSTER]},
            "Action": "sts:AssumeRole",
            "Condition": {"StringEquals": {"sts:ExternalId": ["P3IMS7SBDH", "9IP56Shn6"]}},
        }
    ]


@pytest.fixture
def dagster(aws: AwsServer, monkeypatch: pytest.MonkeyPatch) -> Stack:
    """The stack, and this process running as the one it trusts."""
    user = User(aws, denied=[])
    stack = deploy(aws, TrustedPrincipals=user.arn)
    for name, value in user.environment.items():
        monkeypatch.setenv(name, value)
    forget_sessions()
    return stack


def test_asked_by_the_role_itself_s3_takes_what_is_ours_only(
    aws: AwsServer, dagster: Stack
) -> None:
    s3 = AwsAccess(REGION, dagster.outputs["LakeRoleArn"], "9IP56Shn6").client("s3")
    with enforced(aws):
        s3.put_object(Bucket="lake-bucket", Key="segment-data/_state/x", Body=b"1")
        assert s3.get_object(Bucket="lake-bucket", Key="segment-data/_state/x")["Body"].read()
        s3.delete_object(Bucket="lake-bucket", Key="segment-data/_state/x")
        for key in ("segment-logs/9IP56Shn6/a.gz", "finance/book.csv"):
            with pytest.raises(ClientError, match="AccessDenied"):
                s3.put_object(Bucket="lake-bucket", Key=key, Body=b"1")


def test_without_the_right_external_id_nobody_is_let_in(aws: AwsServer, dagster: Stack) -> None:
    access = AwsAccess(REGION, dagster.outputs["LakeRoleArn"], "guessed")
    with enforced(aws), pytest.raises(InvalidSetting, match="External ID is invalid"):
        access.credentials()
