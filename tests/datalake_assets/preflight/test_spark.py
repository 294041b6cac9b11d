"""What `check` finds of the EMR cluster."""

from collections.abc import Callable
from typing import Any

import pytest

from datalake_assets.preflight.spark import cluster_findings
from eventlake.lake import Lake
from tests.support.aws.enforced import User, enforced
from tests.support.aws.preflight import MakeLake, start_cluster
from tests.support.servers.aws import AwsServer

NONE = "j-NONESUCH"


@pytest.fixture
def on(make_lake: MakeLake) -> Callable[[str], Lake]:
    return lambda cluster_id: make_lake(engine="emr", emr_cluster_id=cluster_id)


def look(lake: Lake) -> dict[str, str]:
    found = cluster_findings(lake, lake.settings.sources)
    return {finding.what: f"{finding.sign} {finding.message}" for finding in found}


def test_a_cluster_in_order(aws: AwsServer, on: Callable[[str], Lake]) -> None:
    cluster = start_cluster(aws)
    assert look(on(cluster)) == {
        f"cluster {cluster}": "✓ WAITING, emr-spark-8.0.0, tagged vendor=segment",
        f"steps of {cluster}": "✓ may be submitted and looked at; 0 pending or running",
    }
    assert aws.client("emr").list_steps(ClusterId=cluster)["Steps"] == []


@pytest.mark.parametrize(
    ("changed", "sign", "words"),
    [
        ({"Tags": []}, "✗", "lacks the tag vendor=segment"),
        ({"ReleaseLabel": "emr-7.9.0"}, "✗", "create the cluster with release emr-spark-8.0.0"),
        ({"LogUri": ""}, "!", "without a LogUri"),
        (
            {
                "Instances": {
                    "MasterInstanceType": "m5.xlarge",
                    "InstanceCount": 1,
                    "KeepJobFlowAliveWhenNoSteps": True,
                    "Placement": {"AvailabilityZone": "us-east-1a"},
                }
            },
            "✗",
            "is in us-east-1a, the settings (or the environment) say eu-west-1",
        ),
    ],
    ids=["tag", "release", "logs", "region"],
)
def test_a_cluster_that_is_not_as_it_should_be(
    aws: AwsServer, on: Callable[[str], Lake], changed: dict[str, Any], sign: str, words: str
) -> None:
    cluster = start_cluster(aws, **changed)
    said = look(on(cluster))[f"cluster {cluster}"]
    assert said.startswith(sign)
    assert words in said


def test_a_cluster_that_was_terminated(aws: AwsServer, on: Callable[[str], Lake]) -> None:
    cluster = start_cluster(aws)
    aws.client("emr").terminate_job_flows(JobFlowIds=[cluster])
    found = look(on(cluster))
    assert found.keys() == {f"cluster {cluster}"}
    assert "is TERMINATED" in found[f"cluster {cluster}"]


def test_a_cluster_that_is_not_there(on: Callable[[str], Lake]) -> None:
    said = look(on(NONE))[f"cluster {NONE}"]
    assert said.startswith(
        "✗ Data lake has invalid configuration for `emr_cluster_id`: there is no"
    )


@pytest.mark.parametrize(
    ("denied", "what", "words"),
    [
        ("elasticmapreduce:DescribeCluster", "cluster", "look at EMR cluster"),
        ("elasticmapreduce:ListSteps", "steps of", "check the status of an EMR job on cluster"),
        ("elasticmapreduce:DescribeStep", "steps of", "check the status of an EMR job on cluster"),
        ("elasticmapreduce:AddJobFlowSteps", "steps of", "submit an EMR job to cluster"),
    ],
)
def test_a_right_that_is_missing(
    aws: AwsServer,
    on: Callable[[str], Lake],
    become: Callable[..., User],
    denied: str,
    what: str,
    words: str,
) -> None:
    step = {"Name": "x", "HadoopJarStep": {"Jar": "command-runner.jar"}}
    cluster = start_cluster(aws, Steps=[step])
    become(denied)
    with enforced(aws):
        said = look(on(cluster))[f"{what} {cluster}"]
    assert said.startswith(
        f"✗ Datalake does not have permissions to {words} {cluster}: {denied} on"
    )
    assert len(aws.client("emr").list_steps(ClusterId=cluster)["Steps"]) == 1
