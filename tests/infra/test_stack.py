"""The stack on a local AWS, with a bucket of its own and with one that was there."""

import pytest
import yaml

from tests.support.aws.stack import REGION, Stack, deploy
from tests.support.servers.aws import AwsServer


@pytest.fixture
def stack(aws: AwsServer) -> Stack:
    return deploy(aws)


def test_everything_is_there(stack: Stack) -> None:
    assert set(stack.resources) == {
        "Bucket",
        "LakeAccess",
        "LakeRole",
        "EmrServiceRole",
        "EmrInstanceRole",
        "EmrInstanceProfile",
        "Cluster",
        "AlertsTopic",
    }


def test_the_cluster_is_in_the_subnet_with_its_roles_logs_and_tag(stack: Stack) -> None:
    cluster = stack.client("emr").describe_cluster(ClusterId=stack.outputs["ClusterId"])["Cluster"]
    tags = {tag["Key"]: tag["Value"] for tag in cluster["Tags"]}
    (subnet,) = stack.client("ec2").describe_subnets(
        Filters=[{"Name": "cidr-block", "Values": ["10.0.1.0/24"]}]
    )["Subnets"]
    assert tags["vendor"] == "segment"
    assert cluster["ReleaseLabel"] == "emr-spark-8.0.0"
    assert cluster["LogUri"] == "s3://lake-bucket/logs/"
    assert cluster["ServiceRole"] == stack.resources["EmrServiceRole"]
    attributes = cluster["Ec2InstanceAttributes"]
    assert attributes["IamInstanceProfile"] == stack.resources["EmrInstanceProfile"]
    assert attributes["Ec2SubnetId"] == subnet["SubnetId"]


def test_a_new_bucket_is_encrypted(stack: Stack) -> None:
    found = stack.client("s3").get_bucket_encryption(Bucket="lake-bucket")
    (rule,) = found["ServerSideEncryptionConfiguration"]["Rules"]
    assert rule["ApplyServerSideEncryptionByDefault"] == {"SSEAlgorithm": "AES256"}


def test_an_existing_bucket_stays_as_it_is(aws: AwsServer) -> None:
    s3 = Stack({}, {}).client("s3")
    s3.create_bucket(Bucket="ours-for-years")
    s3.put_object(Bucket="ours-for-years", Key="finance/book.csv", Body=b"1")
    stack = deploy(aws, BucketName="ours-for-years", CreateBucket="false", Prefix="events/")
    cluster = stack.client("emr").describe_cluster(ClusterId=stack.outputs["ClusterId"])["Cluster"]
    assert "Bucket" not in stack.resources
    assert [entry["Key"] for entry in s3.list_objects_v2(Bucket="ours-for-years")["Contents"]] == [
        "finance/book.csv"
    ]
    assert cluster["LogUri"] == "s3://ours-for-years/events/logs/"


def test_the_network_may_be_given_whole(aws: AwsServer) -> None:
    ec2 = Stack({}, {}).client("ec2")
    groups = [
        ec2.create_security_group(GroupName=name, Description=name)["GroupId"]
        for name in ("master", "core", "service")
    ]
    ec2.create_key_pair(KeyName="ops")
    names = ("MasterSecurityGroup", "CoreSecurityGroup", "ServiceAccessSecurityGroup")
    stack = deploy(aws, KeyPair="ops", **dict(zip(names, groups, strict=True)))
    found = stack.client("emr").describe_cluster(ClusterId=stack.outputs["ClusterId"])
    attributes = found["Cluster"]["Ec2InstanceAttributes"]
    assert [
        attributes["EmrManagedMasterSecurityGroup"],
        attributes["EmrManagedSlaveSecurityGroup"],
        attributes["ServiceAccessSecurityGroup"],
    ] == groups


def test_failing_syncs_can_be_told_by_mail(aws: AwsServer) -> None:
    stack = deploy(aws, AlertEmail="data@example.org")
    (told,) = stack.client("sns").list_subscriptions()["Subscriptions"]
    assert (told["Protocol"], told["Endpoint"]) == ("email", "data@example.org")
    assert told["TopicArn"] == stack.outputs["AlertsTopicArn"]


def test_a_key_of_the_bucket_is_for_the_role_and_for_the_cluster(aws: AwsServer) -> None:
    key = f"arn:aws:kms:{REGION}:123456789012:key/1234abcd"
    stack = deploy(aws, KmsKeyArn=key)
    for role in ("LakeRole", "EmrInstanceRole"):
        statements = [s for document in stack.role_documents(role) for s in document["Statement"]]
        (about_it,) = [s for s in statements if s["Resource"] == key]
        assert about_it["Action"] == ["kms:Decrypt", "kms:GenerateDataKey"]


def test_it_says_what_changes_in_lake_yaml(stack: Stack) -> None:
    assert yaml.safe_load(stack.outputs["LakeYaml"]) == {
        "storage": "s3://lake-bucket/",
        "catalog": "glue",
        "engine": "emr",
        "region": REGION,
        "emr_cluster_id": stack.outputs["ClusterId"],
        "glue_catalog_id": "123456789012",
        "iam_role_arn": stack.outputs["LakeRoleArn"],
    }
