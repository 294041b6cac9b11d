"""What `check` finds of the EMR cluster."""

from collections.abc import Callable
from typing import Any

import pytest

from datalake_assets.preflight.spark import cluster_findings
from spark_resources.engines.emr.cluster import SUPPORTED
from tests.support.aws.enforced import Become, enforced
from tests.support.aws.preflight import LAKE, MakeLake, shown
from tests.support.servers.aws import REGION, AwsServer
from tests.support.servers.emr_cluster import start_cluster

NONE = "j-NONESUCH"


FindingsOf = Callable[[str], dict[str, str]]


@pytest.fixture
def findings_of(make_lake: MakeLake) -> FindingsOf:
    """The findings about a cluster."""

    def findings_of(cluster_id: str) -> dict[str, str]:
        lake = make_lake(engine="emr", emr_cluster_id=cluster_id)
        return shown(cluster_findings(lake, lake.settings.sources))

    return findings_of


def test_a_healthy_cluster(aws: AwsServer, findings_of: FindingsOf) -> None:
    cluster = start_cluster(aws, LAKE)
    assert findings_of(cluster) == {
        f"cluster {cluster}": "✓ WAITING, emr-spark-8.0.0, tagged vendor=segment",
        f"steps of {cluster}": "✓ may be submitted and read; 0 pending or running",
    }
    assert aws.client("emr").list_steps(ClusterId=cluster)["Steps"] == []


@pytest.mark.parametrize(
    ("changed", "sign", "words"),
    [
        ({"Tags": []}, "✗", "lacks the tag vendor=segment"),
        ({"ReleaseLabel": "emr-7.9.0"}, "✗", f"create the cluster with release {SUPPORTED}"),
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
def test_a_cluster_with_a_wrong_setting(
    aws: AwsServer, findings_of: FindingsOf, changed: dict[str, Any], sign: str, words: str
) -> None:
    cluster = start_cluster(aws, LAKE, **changed)
    said = findings_of(cluster)[f"cluster {cluster}"]
    assert said.startswith(sign)
    assert words in said


def test_nodes_that_are_too_small(
    aws: AwsServer, make_lake: MakeLake, findings_of: FindingsOf
) -> None:
    nodes = {"InstanceType": "c5.large", "InstanceCount": 1}
    groups = [{"InstanceRole": role, **nodes} for role in ("MASTER", "CORE")]
    zone = {"Placement": {"AvailabilityZone": f"{REGION}a"}}
    instances = {"InstanceGroups": groups, "KeepJobFlowAliveWhenNoSteps": True, **zone}
    cluster = start_cluster(aws, LAKE, Instances=instances)
    what = f"cluster {cluster}"

    assert "(c5.large) are too small: an executor needs 4 GB" in findings_of(cluster)[what]
    conf = {"spark.executor.memory": "1g", "spark.executor.memoryOverhead": "512m"}
    lake = make_lake(engine="emr", emr_cluster_id=cluster, spark={"conf": conf})
    assert shown(cluster_findings(lake, lake.settings.sources))[what].startswith("✓")


def test_a_cluster_that_was_terminated(aws: AwsServer, findings_of: FindingsOf) -> None:
    cluster = start_cluster(aws, LAKE)
    aws.client("emr").terminate_job_flows(JobFlowIds=[cluster])
    found = findings_of(cluster)
    assert found.keys() == {f"cluster {cluster}"}
    assert "is TERMINATED" in found[f"cluster {cluster}"]


def test_a_cluster_that_does_not_exist(findings_of: FindingsOf) -> None:
    said = findings_of(NONE)[f"cluster {NONE}"]
    assert said.startswith(
        "✗ Eventlake has invalid configuration for `emr_cluster_id`: there is no"
    )


@pytest.mark.parametrize(
    ("denied", "what", "words"),
    [
        ("elasticmapreduce:DescribeCluster", "cluster", "read EMR cluster"),
        ("elasticmapreduce:ListSteps", "steps of", "check the status of EMR Job on EMR Cluster"),
        ("elasticmapreduce:DescribeStep", "steps of", "check the status of EMR Job on EMR Cluster"),
        ("elasticmapreduce:AddJobFlowSteps", "steps of", "submit an EMR job to cluster"),
    ],
)
def test_a_missing_permission(
    aws: AwsServer, findings_of: FindingsOf, become: Become, denied: str, what: str, words: str
) -> None:
    step = {"Name": "x", "HadoopJarStep": {"Jar": "command-runner.jar"}}
    cluster = start_cluster(aws, LAKE, Steps=[step])
    become(denied)
    with enforced(aws):
        said = findings_of(cluster)[f"{what} {cluster}"]
    assert said.startswith(
        f"✗ Eventlake does not have permissions to {words} {cluster}: {denied} on"
    )
    assert len(aws.client("emr").list_steps(ClusterId=cluster)["Steps"]) == 1
