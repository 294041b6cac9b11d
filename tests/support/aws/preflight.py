"""A healthy lake on the local AWS, for the tests of the preflight checks."""

import gzip
from collections.abc import Callable, Iterable
from typing import Any

from datalake_assets.preflight import Finding
from eventlake.lake import Lake
from tests.support.servers.aws import REGION, AwsServer

LAKE = "lake-bucket"


SOURCE_ID = "9IP56Shn6"


OCTOBER_1 = "1790812800000"  # its day folder in the archive


MakeLake = Callable[..., Lake]


def put_raw_file(aws: AwsServer, folder: str = OCTOBER_1, source: str = SOURCE_ID) -> None:
    key = f"segment-logs/{source}/{folder}/a.gz"
    aws.client("s3").put_object(Bucket=LAKE, Key=key, Body=gzip.compress(b"{}"))


def start_cluster(aws: AwsServer, **more: Any) -> str:
    """The id of a cluster that waits for steps, as docs/aws.md has it or otherwise."""
    asked: dict[str, Any] = {
        "Name": "datalake",
        "ReleaseLabel": "emr-spark-8.0.0",
        "LogUri": f"s3://{LAKE}/logs/",
        "Instances": {
            "MasterInstanceType": "m5.xlarge",
            "SlaveInstanceType": "m5.xlarge",
            "InstanceCount": 3,
            "KeepJobFlowAliveWhenNoSteps": True,
            "Placement": {"AvailabilityZone": f"{REGION}a"},
        },
        "JobFlowRole": "instance_profile",
        "ServiceRole": "service_role",
        "Tags": [{"Key": "vendor", "Value": "segment"}],
    }
    started: str = aws.client("emr").run_job_flow(**(asked | more))["JobFlowId"]
    return started


def signs(found: Iterable[Finding]) -> dict[str, str]:
    """What was looked at, and its sign."""
    return {finding.what: finding.sign for finding in found}


def told(found: Iterable[Finding], what: str) -> str:
    """What is told of the one thing that is not in order."""
    [wrong] = [finding for finding in found if finding.sign != "✓"]
    assert wrong.what == what
    return wrong.message
