"""The template as it stands: its form, and the numbers it was made for."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from eventlake.aws.lifecycle import our_rules
from eventlake.rules import paths
from scripts.aws_policies import TEMPLATE, main, policies, properties, template
from tests.support.aws.stack import default
from tests.support.repo import ROOT

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
