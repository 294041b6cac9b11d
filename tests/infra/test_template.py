"""The CloudFormation template and the stack it deploys."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import botocore.session
import pytest
import yaml
from botocore.validate import validate_parameters

from eventlake.aws.lifecycle import our_rules
from eventlake.rules import paths
from scripts.aws_policies import TEMPLATE, main, policies, properties, template
from spark_resources.engines.emr.cluster import SUPPORTED, is_supported
from spark_resources.engines.emr.nodes import memory_gb
from tests.support.aws.stack import REGION, Stack, deploy, evaluated
from tests.support.repo import ROOT
from tests.support.servers.aws import AwsServer

GLUE = "com.amazonaws.glue.catalog.metastore.AWSGlueDataCatalogHiveClientFactory"


def test_the_linter_finds_nothing() -> None:
    linter = Path(sys.executable).with_name("cfn-lint")
    done = subprocess.run([linter, TEMPLATE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


NETWORK = {"VpcId": "vpc-1", "SubnetIds": "subnet-1,subnet-2"}


def cluster(**parameters: str) -> dict[str, Any]:
    """The properties of the cluster with these parameters."""
    found: dict[str, Any] = evaluated(properties("Cluster"), **NETWORK, **parameters)
    return found


def test_the_cluster_has_five_nodes_on_demand() -> None:
    nodes = cluster()["Instances"]
    groups = [
        nodes["MasterInstanceGroup"],
        nodes["CoreInstanceGroup"],
        *nodes["TaskInstanceGroups"],
    ]
    assert [group["InstanceCount"] for group in groups] == [1, 2, 2]
    assert {group["InstanceType"] for group in groups} == {"m5.xlarge"}
    assert {group["Market"] for group in groups} == {"ON_DEMAND"}
    assert nodes["Ec2SubnetId"] == "subnet-1"
    assert not any("Fleet" in key for key in nodes)


def test_the_cluster_scales_stays_up_and_runs_several_syncs_at_once() -> None:
    found = cluster()
    assert found["ManagedScalingPolicy"]["ComputeLimits"] == {
        "UnitType": "Instances",
        "MinimumCapacityUnits": 2,
        "MaximumCapacityUnits": 8,
        "MaximumOnDemandCapacityUnits": 8,
        "MaximumCoreCapacityUnits": 2,
    }
    assert "AutoScalingRole" not in found  # managed scaling needs none
    roles = [name for name, r in template()["Resources"].items() if r["Type"] == "AWS::IAM::Role"]
    assert roles == ["LakeRole", "EmrServiceRole", "EmrInstanceRole", "JobRole"]
    assert found["Instances"]["KeepJobFlowAliveWhenNoSteps"] is True
    assert found["StepConcurrencyLevel"] == 4
    assert is_supported(found["ReleaseLabel"])
    assert found["ReleaseLabel"] == SUPPORTED


def test_the_workers_have_room_for_the_application_masters_of_all_syncs() -> None:
    """By default all of them get a tenth of the memory that YARN has."""
    found = cluster()
    [scheduler] = [
        one["ConfigurationProperties"]
        for one in found["Configurations"]
        if one["Classification"] == "capacity-scheduler"
    ]
    share = float(scheduler["yarn.scheduler.capacity.maximum-am-resource-percent"])
    least = found["ManagedScalingPolicy"]["ComputeLimits"]["MinimumCapacityUnits"]
    for_yarn = least * memory_gb("m5.xlarge") * 0.75
    assert found["StepConcurrencyLevel"] * 1.0 <= share * for_yarn < for_yarn


def test_task_nodes_may_come_from_the_spot_market() -> None:
    found = cluster(SpotTaskNodes="true")
    nodes = found["Instances"]
    assert nodes["TaskInstanceGroups"][0]["Market"] == "SPOT"
    assert nodes["CoreInstanceGroup"]["Market"] == "ON_DEMAND"
    limits = found["ManagedScalingPolicy"]["ComputeLimits"]
    assert limits["MaximumOnDemandCapacityUnits"] == limits["MaximumCoreCapacityUnits"]


@pytest.mark.parametrize("spot", ["true", "false"])
def test_fleets_take_several_types_in_several_subnets(spot: str) -> None:
    found = cluster(InstanceFleets="true", SpotTaskNodes=spot, ThirdInstanceType="")
    nodes = found["Instances"]
    assert nodes["Ec2SubnetIds"] == ["subnet-1", "subnet-2"]
    assert not any("Group" in key and "Security" not in key for key in nodes)
    [task] = nodes["TaskInstanceFleets"]
    types = [one["InstanceType"] for one in task["InstanceTypeConfigs"]]
    assert types == ["m5.xlarge", "m5a.xlarge"]
    targets = (task["TargetSpotCapacity"], task["TargetOnDemandCapacity"])
    assert targets == ((2, 0) if spot == "true" else (0, 2))
    assert nodes["CoreInstanceFleet"]["TargetOnDemandCapacity"] == 2
    assert found["ManagedScalingPolicy"]["ComputeLimits"]["UnitType"] == "InstanceFleetUnits"


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"SpotTaskNodes": "true"},
        {"InstanceFleets": "true", "SpotTaskNodes": "true"},
        {"WithHive": "true", "KeyPair": "ops"},
    ],
    ids=["default", "spot", "fleets", "hive"],
)
def test_emr_accepts_the_cluster(parameters: dict[str, str]) -> None:
    """By the description of `RunJobFlow`, to which CloudFormation turns it."""
    request = cluster(**parameters)
    instances = request["Instances"]
    known = {
        "InstanceGroups": [
            {**group, "InstanceRole": role}
            for role, group in _given(instances, "InstanceGroup").items()
        ],
        "InstanceFleets": [
            {**fleet, "InstanceFleetType": role}
            for role, fleet in _given(instances, "InstanceFleet").items()
        ],
    }
    rest = {key: value for key, value in instances.items() if "Instance" not in key}
    request["Instances"] = {**rest, **{key: value for key, value in known.items() if value}}
    request["Configurations"] = [
        {"Classification": one["Classification"], "Properties": one["ConfigurationProperties"]}
        for one in request["Configurations"]
    ]
    for name in ("LogUri", "ServiceRole", "JobFlowRole", "Name"):
        request[name] = "x"  # made of other resources
    model = botocore.session.get_session().get_service_model("emr").operation_model("RunJobFlow")
    validate_parameters(request, model.input_shape)


def _given(instances: dict[str, Any], kind: str) -> dict[str, dict[str, Any]]:
    tasks = instances.get(f"Task{kind}s", [])
    found = {"TASK": tasks[0]} if tasks else {}
    for role in ("Master", "Core"):
        if one := instances.get(f"{role}{kind}"):
            found[role.upper()] = one
    return found


def test_glue_is_the_metastore_of_spark_and_of_hive_where_there_is_hive() -> None:
    for hive, expected in [
        ("false", {"spark-hive-site"}),
        ("true", {"spark-hive-site", "hive-site"}),
    ]:
        found = {
            one["Classification"]: one["ConfigurationProperties"]
            for one in cluster(WithHive=hive)["Configurations"]
        }
        assert {name for name in found if name.endswith("hive-site")} == expected
        for name in expected:
            assert found[name] == {"hive.metastore.client.factory.class": GLUE}


def test_there_need_be_neither_cluster_nor_network() -> None:
    [rule] = template()["Rules"].values()
    assert rule["RuleCondition"] == {"Fn::Equals": [{"Ref": "WithCluster"}, "true"]}


def as_api(rule: dict[str, Any]) -> dict[str, Any]:
    """A lifecycle rule of the template without prefix, as S3's own interface has it."""
    plain = {
        key: value["Fn::Sub"].replace("${Prefix}", "") if key in ("Id", "Prefix") else value
        for key, value in rule.items()
    }
    renamed = {"ID": plain.pop("Id"), "Filter": {"Prefix": plain.pop("Prefix")}}
    if days := plain.pop("ExpirationInDays", None):
        renamed["Expiration"] = {"Days": days}
    if plain.pop("ExpiredObjectDeleteMarker", None):
        renamed["Expiration"] = {"ExpiredObjectDeleteMarker": True}
    return plain | renamed


def test_a_new_bucket_expires_files_like_an_existing_one_is_closed_and_outlives_the_stack() -> None:
    rules = evaluated(properties("Bucket")["LifecycleConfiguration"]["Rules"])
    assert list(map(as_api, rules)) == our_rules("", 14)
    assert set(properties("Bucket")["PublicAccessBlockConfiguration"].values()) == {True}
    (rule,) = properties("Bucket")["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert rule["ServerSideEncryptionByDefault"]["SSEAlgorithm"]["Fn::If"][2] == "AES256"
    assert template()["Resources"]["Bucket"]["DeletionPolicy"] == "Retain"


def test_files_of_tables_may_move_to_a_colder_storage_class() -> None:
    rules = properties("Bucket")["LifecycleConfiguration"]["Rules"]
    *_, cold = evaluated(rules, ColdAfterDays="365", ColdStorageClass="GLACIER_IR")
    assert cold["Prefix"] == {"Fn::Sub": "${Prefix}segment-data/data/"}
    assert cold["Transitions"] == [{"StorageClass": "GLACIER_IR", "TransitionInDays": "365"}]


def test_the_template_knows_the_folders_of_the_lake() -> None:
    listed = properties("LakeAccess")["PolicyDocument"]["Statement"][2]
    prefixes = listed["Condition"]["StringLike"]["s3:prefix"]
    folders = {entry["Fn::Sub"].removeprefix("${Prefix}").removesuffix("/*") for entry in prefixes}
    assert evaluated({"Ref": "RawFolder"}) == "segment-logs"
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
    others = {"Bucket", "LakeAccess", "ClusterAccess", "Cluster", "AlertsTopic"}
    assert stack.resources.keys() == roles | others
    cluster = stack.client("emr").describe_cluster(ClusterId=stack.outputs["ClusterId"])["Cluster"]
    tags = {tag["Key"]: tag["Value"] for tag in cluster["Tags"]}
    (subnet,) = stack.client("ec2").describe_subnets(
        Filters=[{"Name": "cidr-block", "Values": ["10.0.1.0/24"]}]
    )["Subnets"]
    assert tags["vendor"] == "segment"
    assert cluster["ReleaseLabel"] == SUPPORTED
    assert cluster["LogUri"] == "s3://lake-bucket/logs/"
    assert cluster["ServiceRole"] == stack.resources["EmrServiceRole"]
    attributes = cluster["Ec2InstanceAttributes"]
    assert attributes["IamInstanceProfile"] == stack.resources["EmrInstanceProfile"]
    assert attributes["Ec2SubnetId"] == subnet["SubnetId"]

    found = stack.client("s3").get_bucket_encryption(Bucket="lake-bucket")
    (rule,) = found["ServerSideEncryptionConfiguration"]["Rules"]
    assert rule["ApplyServerSideEncryptionByDefault"] == {"SSEAlgorithm": "AES256"}


def test_a_stack_without_a_cluster_runs_jobs_on_emr_serverless(aws: AwsServer) -> None:
    network = {"VpcId": "", "SubnetIds": ""}
    stack = deploy(aws, WithCluster="false", WithServerless="true", **network)
    roles = {"LakeRole", "JobRole"}
    others = {"Bucket", "LakeAccess", "JobAccess", "Application", "AlertsTopic"}
    assert stack.resources.keys() == roles | others
    application_id = stack.outputs["ApplicationId"]
    found = stack.client("emr-serverless").get_application(applicationId=application_id)
    assert found["application"]["releaseLabel"] == SUPPORTED
    assert found["application"]["tags"] == {"vendor": "segment"}
    assert yaml.safe_load(stack.outputs["LakeYaml"]) == {
        "storage": "s3://lake-bucket/",
        "catalog": "glue",
        "engine": "emr-serverless",
        "region": REGION,
        "emr_serverless_application_id": application_id,
        "execution_role_arn": stack.outputs["JobRoleArn"],
        "glue_catalog_id": "123456789012",
        "iam_role_arn": stack.outputs["LakeRoleArn"],
    }


def test_a_stack_may_have_no_compute_at_all(aws: AwsServer) -> None:
    stack = deploy(aws, WithCluster="false", VpcId="", SubnetIds="")
    assert stack.resources.keys() == {"LakeRole", "Bucket", "LakeAccess", "AlertsTopic"}
    assert yaml.safe_load(stack.outputs["LakeYaml"])["engine"] == "local"


def test_a_workgroup_limits_what_queries_scan() -> None:
    found = evaluated(properties("Workgroup"), AthenaScanLimitGB="50")["WorkGroupConfiguration"]
    scanned = found["BytesScannedCutoffPerQuery"]["Fn::Sub"].replace("${AthenaScanLimitGB}", "50")
    assert int(scanned) == 50 * 10**9
    assert found["EnforceWorkGroupConfiguration"] is True
    place = found["ResultConfiguration"]["OutputLocation"]["Fn::Sub"]
    assert place == "s3://${BucketName}/${Prefix}logs/athena/"  # where results expire
    assert template()["Resources"]["Workgroup"]["Condition"] == "HasWorkgroup"


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
    stack = deploy(aws, KmsKeyArn=key, WithServerless="true")
    for role in ("LakeRole", "EmrInstanceRole", "JobRole"):
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
