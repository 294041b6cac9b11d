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


def test_the_cluster_scales_stays_up_and_runs_several_syncs_at_once() -> None:
    cluster = properties("Cluster")
    assert cluster["ManagedScalingPolicy"]["ComputeLimits"] == {
        "UnitType": "Instances",
        "MinimumCapacityUnits": 2,
        "MaximumCapacityUnits": 8,
        "MaximumOnDemandCapacityUnits": 8,
        "MaximumCoreCapacityUnits": 2,
    }
    assert "AutoScalingRole" not in cluster  # managed scaling needs none
    roles = [name for name, r in template()["Resources"].items() if r["Type"] == "AWS::IAM::Role"]
    assert roles == ["LakeRole", "EmrServiceRole", "EmrInstanceRole"]
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


def as_api(rule: dict[str, Any]) -> dict[str, Any]:
    """A lifecycle rule of the template without prefix, as S3's own interface has it."""
    plain = {
        key: value["Fn::Sub"].replace("${Prefix}", "") if key in ("Id", "Prefix") else value
        for key, value in rule.items()
    }
    renamed = {"ID": plain.pop("Id"), "Filter": {"Prefix": plain.pop("Prefix")}}
    if days := plain.pop("ExpirationInDays", None):
        renamed["Expiration"] = {"Days": days}
    return plain | renamed


def test_a_new_bucket_expires_files_like_an_existing_one_is_closed_and_outlives_the_stack() -> None:
    rules = properties("Bucket")["LifecycleConfiguration"]["Rules"]
    assert list(map(as_api, rules)) == our_rules("", 14)
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


def test_the_stack_has_its_resources_and_the_cluster_its_subnet_roles_logs_and_tag(
    stack: Stack,
) -> None:
    roles = {"LakeRole", "EmrServiceRole", "EmrInstanceRole", "EmrInstanceProfile"}
    assert stack.resources.keys() == roles | {"Bucket", "LakeAccess", "Cluster", "AlertsTopic"}
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
    assert aws.content("ours-for-years").keys() == {"finance/book.csv"}
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


def test_alerts_can_be_sent_by_email(aws: AwsServer) -> None:
    stack = deploy(aws, AlertEmail="data@example.org")
    (to,) = stack.client("sns").list_subscriptions()["Subscriptions"]
    assert (to["Protocol"], to["Endpoint"]) == ("email", "data@example.org")
    assert to["TopicArn"] == stack.outputs["AlertsTopicArn"]


def test_a_key_of_the_bucket_is_for_the_role_and_for_the_cluster(aws: AwsServer) -> None:
    key = f"arn:aws:kms:{REGION}:123456789012:key/1234abcd"
    stack = deploy(aws, KmsKeyArn=key)
    for role in ("LakeRole", "EmrInstanceRole"):
        statements = [s for document in stack.role_documents(role) for s in document["Statement"]]
        (about_it,) = [s for s in statements if s["Resource"] == key]
        assert about_it["Action"] == ["kms:Decrypt", "kms:GenerateDataKey"]


def test_an_output_has_the_lines_for_lake_yaml(stack: Stack) -> None:
    assert yaml.safe_load(stack.outputs["LakeYaml"]) == {
        "storage": "s3://lake-bucket/",
        "catalog": "glue",
        "engine": "emr",
        "region": REGION,
        "emr_cluster_id": stack.outputs["ClusterId"],
        "glue_catalog_id": "123456789012",
        "iam_role_arn": stack.outputs["LakeRoleArn"],
    }
