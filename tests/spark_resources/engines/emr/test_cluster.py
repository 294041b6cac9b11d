"""A cluster made like the standing one: what is the same, and what makes sure that it ends."""

from typing import Any

import botocore.session
import pytest
from botocore.validate import validate_parameters

from eventlake.rules.errors import InvalidSetting
from spark_resources.engines.emr.cluster import (
    Cluster,
    cluster_like,
    is_supported,
)
from spark_resources.engines.emr.nodes import executors_on, memory_gb, processors, slots_of
from spark_resources.engines.emr.step import properties_of

STEP = {
    "Name": "datalake replay",
    "ActionOnFailure": "CONTINUE",
    "HadoopJarStep": {"Jar": "command-runner.jar", "Args": ["spark-submit"]},
}
GP3 = {"VolumeSpecification": {"VolumeType": "gp3", "SizeInGB": 32}, "Device": "/dev/sdb"}
DESCRIBED: dict[str, Any] = {
    "Id": "j-STANDING",
    "Name": "datalake",
    "Status": {"State": "WAITING"},
    "ReleaseLabel": "emr-spark-8.0.0",
    "LogUri": "s3n://bucket/logs/",
    "Applications": [{"Name": "Spark", "Version": "4.0.2"}, {"Name": "Hive", "Version": "3.1.3"}],
    "Configurations": [
        {
            "Classification": "spark-hive-site",
            "Properties": {"hive.metastore.client.factory.class": "Glue"},
            "Configurations": [],
        }
    ],
    "ServiceRole": "arn:aws:iam::123456789012:role/segment_emr_service_role",
    "SecurityConfiguration": "",
    "ScaleDownBehavior": "TERMINATE_AT_TASK_COMPLETION",
    "TerminationProtected": True,
    "EbsRootVolumeSize": 30,
    "Tags": [
        {"Key": "vendor", "Value": "segment"},
        {"Key": "team", "Value": "data"},
        {"Key": "aws:cloudformation:stack-name", "Value": "datalake"},
    ],
    "Ec2InstanceAttributes": {
        "Ec2KeyName": "key",
        "Ec2SubnetId": "subnet-1",
        "RequestedEc2SubnetIds": ["subnet-1", "subnet-2"],
        "IamInstanceProfile": "segment_emr_instance_profile",
        "EmrManagedMasterSecurityGroup": "sg-master",
        "EmrManagedSlaveSecurityGroup": "sg-workers",
        "ServiceAccessSecurityGroup": "sg-service",
        "AdditionalMasterSecurityGroups": [],
        "AdditionalSlaveSecurityGroups": ["sg-more"],
    },
}
SCALING = {
    "ComputeLimits": {
        "UnitType": "Instances",
        "MinimumCapacityUnits": 2,
        "MaximumCapacityUnits": 8,
        "MaximumOnDemandCapacityUnits": 8,
        "MaximumCoreCapacityUnits": 2,
    }
}


def group(role: str, count: int, **other: Any) -> dict[str, Any]:
    common = {"Id": "ig-1", "Name": role.lower(), "Market": "ON_DEMAND", "EbsBlockDevices": []}
    nodes = {"InstanceType": "m5.xlarge", "RequestedInstanceCount": count}
    return {**common, "InstanceGroupType": role, **nodes, **other}


GROUPS = Cluster(
    DESCRIBED,
    groups=(
        group("MASTER", 3),
        group("CORE", 2, EbsBlockDevices=[GP3, GP3], EbsOptimized=True),
        group("TASK", 0),
    ),
    bootstrap_actions=({"Name": "agent", "ScriptPath": "s3://b/agent.sh", "Args": ["x"]},),
    managed_scaling=SCALING,
)
FLEETS = Cluster(
    {**DESCRIBED, "InstanceCollectionType": "INSTANCE_FLEET"},
    fleets=(
        {
            "InstanceFleetType": "CORE",
            "TargetOnDemandCapacity": 0,
            "TargetSpotCapacity": 4,
            "InstanceTypeSpecifications": [
                {"InstanceType": "m5.xlarge", "WeightedCapacity": 1, "EbsBlockDevices": [GP3]},
                {"InstanceType": "m5.2xlarge", "WeightedCapacity": 2, "BidPrice": "0.5"},
            ],
            "LaunchSpecifications": {
                "SpotSpecification": {
                    "TimeoutDurationMinutes": 10,
                    "TimeoutAction": "SWITCH_TO_ON_DEMAND",
                }
            },
        },
    ),
)


def asked(standing: Cluster) -> dict[str, Any]:
    return cluster_like(standing, "replay", STEP, {"datalake-run": "17"})


@pytest.mark.parametrize("standing", [GROUPS, FLEETS], ids=["groups", "fleets"])
def test_emr_accepts_our_requests(standing: Cluster) -> None:
    shape = botocore.session.get_session().get_service_model("emr").operation_model("RunJobFlow")
    validate_parameters(asked(standing), shape.input_shape)


def test_software_roles_network_and_logs_are_the_same() -> None:
    like = asked(GROUPS)
    assert like["ReleaseLabel"] == "emr-spark-8.0.0"
    assert like["Applications"] == [{"Name": "Spark"}, {"Name": "Hive"}]
    assert like["Configurations"] == DESCRIBED["Configurations"]
    assert like["ServiceRole"] == DESCRIBED["ServiceRole"]
    assert like["JobFlowRole"] == "segment_emr_instance_profile"
    assert like["LogUri"] == "s3://bucket/logs/"
    assert like["ManagedScalingPolicy"] == SCALING
    assert like["EbsRootVolumeSize"] == 30
    assert "SecurityConfiguration" not in like  # there is none
    assert like["BootstrapActions"] == [
        {"Name": "agent", "ScriptBootstrapAction": {"Path": "s3://b/agent.sh", "Args": ["x"]}}
    ]
    network = {key: like["Instances"][key] for key in like["Instances"] if "ecurity" in key}
    assert network == {
        "EmrManagedMasterSecurityGroup": "sg-master",
        "EmrManagedSlaveSecurityGroup": "sg-workers",
        "ServiceAccessSecurityGroup": "sg-service",
        "AdditionalSlaveSecurityGroups": ["sg-more"],
    }
    assert (like["Instances"]["Ec2SubnetId"], like["Instances"]["Ec2KeyName"]) == (
        "subnet-1",
        "key",
    )


def test_nodes_are_the_same_but_one_master_is_enough() -> None:
    groups = asked(GROUPS)["Instances"]["InstanceGroups"]
    assert [(g["InstanceRole"], g["InstanceType"], g["InstanceCount"]) for g in groups] == [
        ("MASTER", "m5.xlarge", 1),
        ("CORE", "m5.xlarge", 2),
        ("TASK", "m5.xlarge", 1),  # scaled down to none just now
    ]
    assert groups[1]["EbsConfiguration"] == {
        "EbsBlockDeviceConfigs": [
            {"VolumeSpecification": {"VolumeType": "gp3", "SizeInGB": 32}, "VolumesPerInstance": 2}
        ],
        "EbsOptimized": True,
    }


SCALED = group("TASK", 2, AutoScalingPolicy={"Constraints": {"MinCapacity": 1, "MaxCapacity": 4}})


@pytest.mark.parametrize(("managed", "kept"), [(None, True), (SCALING, False)])
def test_there_is_one_kind_of_scaling(managed: dict[str, Any] | None, kept: bool) -> None:
    """A cluster with managed scaling may still name the role of its earlier scaling."""
    described = {**DESCRIBED, "AutoScalingRole": "segment_emr_autoscaling_role"}
    like = asked(Cluster(described, groups=(SCALED,), managed_scaling=managed))
    [task] = like["Instances"]["InstanceGroups"]
    assert ("AutoScalingRole" in like, "AutoScalingPolicy" in task) == (kept, kept)
    assert ("ManagedScalingPolicy" in like) is not kept


def test_fleets_keep_their_targets_weights_and_subnets() -> None:
    instances = asked(FLEETS)["Instances"]
    assert instances["Ec2SubnetIds"] == ["subnet-1", "subnet-2"]
    [fleet] = instances["InstanceFleets"]
    assert fleet["TargetSpotCapacity"] == 4
    assert [one["InstanceType"] for one in fleet["InstanceTypeConfigs"]] == [
        "m5.xlarge",
        "m5.2xlarge",
    ]
    assert fleet["InstanceTypeConfigs"][1]["BidPrice"] == "0.5"


def test_it_ends_by_itself_without_its_driver() -> None:
    like = asked(GROUPS)
    assert like["Instances"]["KeepJobFlowAliveWhenNoSteps"] is False
    assert like["Instances"]["TerminationProtected"] is False  # the standing one is protected
    assert like["AutoTerminationPolicy"]["IdleTimeout"] >= 60
    assert like["Steps"] == [{**STEP, "ActionOnFailure": "TERMINATE_CLUSTER"}]


def test_tags_are_the_same_less_those_of_aws_and_with_ours() -> None:
    assert {tag["Key"]: tag["Value"] for tag in asked(GROUPS)["Tags"]} == {
        "vendor": "segment",
        "team": "data",
        "datalake-run": "17",
    }


@pytest.mark.parametrize(
    ("standing", "slots"), [(GROUPS, 8 * 4), (FLEETS, 4 * 4), (Cluster(DESCRIBED), 1)]
)
def test_work_is_cut_for_the_cluster_when_it_has_grown(standing: Cluster, slots: int) -> None:
    assert slots_of(standing) == slots


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        # 12 GB for YARN, one of them for its master: two executors, as EMR's own default.
        ("m5.xlarge", ("2", "2g", "3584m", 2)),
        ("m5.2xlarge", ("2", "2g", "3840m", 4)),
        ("r6g.xlarge", ("2", "2g", "9728m", 2)),
        ("m5.large", ("2", "2g", "3072m", 1)),
        ("c5.xlarge", ("2", "2g", "3072m", 1)),  # half of its cores, rather than too little memory
        ("c5.2xlarge", ("2", "2g", "3584m", 2)),
    ],
)
def test_executors_have_the_size_of_their_nodes(
    kind: str, expected: tuple[str, str, str, int]
) -> None:
    found = executors_on(kind)
    assert found is not None
    assert (*found.settings().values(), found.per_node) == expected
    in_all = found.per_node * found.gb
    assert in_all + 1 <= memory_gb(kind) * 0.75


@pytest.mark.parametrize("kind", ["c5.large", "m5.medium", "t3.medium", "c6g.medium"])
def test_a_node_may_be_too_small_for_an_executor(kind: str) -> None:
    assert executors_on(kind) is None


def test_nodes_that_are_too_small_are_refused_unless_the_settings_give_a_size() -> None:
    small = Cluster(DESCRIBED, groups=(group("CORE", 2, InstanceType="c5.large"),))
    with pytest.raises(InvalidSetting, match=r"\(c5.large\) are too small: an executor needs 4 GB"):
        properties_of(small, "3.11", {})
    own = {"spark.executor.memory": "1g", "spark.executor.memoryOverhead": "1g"}
    assert properties_of(small, "3.11", own)["spark.executor.memory"] == "1g"


def test_the_settings_win_over_sizes_but_not_over_what_our_code_needs() -> None:
    conf = {"spark.executor.memoryOverhead": "5g", "spark.executorEnv.PYTHONPATH": "elsewhere"}
    found = properties_of(GROUPS, "3.11", conf)
    assert found["spark.executor.memoryOverhead"] == "5g"
    assert found["spark.executor.memory"] == "2g"
    assert found["spark.executorEnv.PYTHONPATH"] == "./code:./environment"


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("m5.large", 2), ("m5.xlarge", 4), ("r6g.12xlarge", 48), ("m5.metal", 64), ("odd", 1)],
)
def test_processors_by_the_name_of_the_size(kind: str, expected: int) -> None:
    assert processors(kind) == expected


@pytest.mark.parametrize(
    ("release", "supported"),
    [
        ("emr-spark-8.0.0", True),
        ("emr-spark-8.1.0", True),
        ("emr-spark-9.0.0-preview", True),
        ("emr-7.13.0", False),
        ("emr-8.0.0", False),
        ("", False),
    ],
)
def test_releases_with_spark_4_are_supported(release: str, supported: bool) -> None:
    assert is_supported(release) is supported
