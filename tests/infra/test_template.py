"""The CloudFormation template and the stack it deploys."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from eventlake.aws.lifecycle import our_rules
from eventlake.rules import paths
from scripts.aws_policies import TEMPLATE, main, policies, properties, template
from tests.support.aws.stack import REGION, Stack, default, deploy
from tests.support.repo import ROOT
from tests.support.servers.aws import AwsServer

GLUE = "com.amazonaws.glue.catalog.metastore.AWSGlueDataCatalogHiveClientFactory"


def test_the_linter_finds_nothing() -> None:
    linter = Path(sys.executable).with_name("cfn-lint")
    done = subprocess.run([linter, TEMPLATE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(
    ("group", "count"),
    [("MasterInstanceGroup", 1), ("CoreInstanceGroup", 2), ("TaskInstanceGroups", 2)],
)
def test_the_cluster_has_five_nodes_on_demand(group: str, count: int) -> None:
    found = properties("Cluster")["Instances"][group]
    (nodes,) = found if isinstance(found, list) else [found]
    assert nodes["InstanceCount"] == count
    assert default(nodes["InstanceType"]) == "m5.xlarge"
    assert nodes["Market"] == "ON_DEMAND"


def test_it_scales_between_two_and_eight() -> None:
    assert properties("Cluster")["ManagedScalingPolicy"]["ComputeLimits"] == {
        "UnitType": "Instances",
        "MinimumCapacityUnits": 2,
        "MaximumCapacityUnits": 8,
        "MaximumOnDemandCapacityUnits": 8,
        "MaximumCoreCapacityUnits": 2,
    }


def test_it_stays_and_works_on_several_syncs_at_once() -> None:
    cluster = properties("Cluster")
    assert cluster["Instances"]["KeepJobFlowAliveWhenNoSteps"] is True
    assert default(cluster["StepConcurrencyLevel"]) == 10
    assert default(cluster["ReleaseLabel"]) == "emr-spark-8.0.0"


def test_glue_is_the_metastore_of_spark_and_of_hive_where_there_is_hive() -> None:
    spark, hive = properties("Cluster")["Configurations"]
    condition, configured, absent = hive["Fn::If"]
    assert (condition, absent) == ("HasHive", {"Ref": "AWS::NoValue"})
    for part, name in [(spark, "spark-hive-site"), (configured, "hive-site")]:
        assert part["Classification"] == name
        assert part["ConfigurationProperties"] == {"hive.metastore.client.factory.class": GLUE}


def test_managed_scaling_takes_no_role_for_autoscaling() -> None:
    assert "AutoScalingRole" not in properties("Cluster")
    roles = [
        name for name, made in template()["Resources"].items() if made["Type"] == "AWS::IAM::Role"
    ]
    assert roles == ["LakeRole", "EmrServiceRole", "EmrInstanceRole"]


def as_api(rule: dict[str, Any]) -> dict[str, Any]:
    """A lifecycle rule of the template without prefix, as S3's own interface has it."""
    plain = {
        key: value["Fn::Sub"].replace("${Prefix}", "") if isinstance(value, dict) else value
        for key, value in rule.items()
        if key in ("Id", "Status", "Prefix")
    }
    return {
        "ID": plain["Id"],
        "Status": plain["Status"],
        "Filter": {"Prefix": plain["Prefix"]},
        **(
            {"Expiration": {"Days": rule["ExpirationInDays"]}} if "ExpirationInDays" in rule else {}
        ),
        **{
            key: rule[key]
            for key in ("NoncurrentVersionExpiration", "AbortIncompleteMultipartUpload")
            if key in rule
        },
    }


def test_a_new_bucket_forgets_what_an_existing_one_is_taught_to_forget() -> None:
    rules = properties("Bucket")["LifecycleConfiguration"]["Rules"]
    assert list(map(as_api, rules)) == our_rules("", 14)


def test_a_new_bucket_is_closed_encrypted_and_outlives_the_stack() -> None:
    assert set(properties("Bucket")["PublicAccessBlockConfiguration"].values()) == {True}
    (rule,) = properties("Bucket")["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert rule["ServerSideEncryptionByDefault"]["SSEAlgorithm"]["Fn::If"][2] == "AES256"
    assert template()["Resources"]["Bucket"]["DeletionPolicy"] == "Retain"


def test_the_template_knows_the_folders_of_the_lake() -> None:
    listed = properties("LakeAccess")["PolicyDocument"]["Statement"][2]
    prefixes = listed["Condition"]["StringLike"]["s3:prefix"]
    folders = {entry["Fn::Sub"].removeprefix("${Prefix}").removesuffix("/*") for entry in prefixes}
    assert default({"Ref": "RawFolder"}) == "segment-logs"
    assert folders - {"${RawFolder}"} == set(paths.OURS) - {"segment-logs"}


@pytest.mark.parametrize("name", policies())
def test_a_policy_to_paste_is_printed_without_functions_of_the_template(name: str) -> None:
    command = [sys.executable, "scripts/aws_policies.py", name]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    policy = json.loads(printed)
    assert policy["Statement"] and all(one["Effect"] == "Allow" for one in policy["Statement"])
    assert not re.search(r"Fn::|\$\{|\"Ref\"", printed)
    assert policies()[name] == policy


def test_an_unknown_policy_is_refused_with_the_names_of_all(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["lake"]) == 2
    assert capsys.readouterr().err == f"Name one of: {', '.join(policies())}\n"


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
