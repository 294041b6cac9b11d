"""A lake on S3, Glue and EMR: what `check` finds there, and where a refusal is reported."""

import gzip
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from tests.support.aws.enforced import Become, all_but, enforced
from tests.support.aws.preflight import LAKE, OCTOBER_1
from tests.support.lakes.archive import as_line, order
from tests.support.servers.aws import AwsServer
from tests.support.servers.emr_cluster import start_cluster
from tests.support.terminal import Result, datalake, signs

OBJECTS = f"arn:aws:s3:::{LAKE}/events"
SETTINGS = f"""\
workspace_id: P3IMS7SBDH
storage: s3://{LAKE}/events
catalog: glue
region: eu-west-1
sources:
  - id: 9IP56Shn6
    slug: ios_prod
"""


def put_event(aws: AwsServer, id: str, source: str = "9IP56Shn6") -> None:
    """A raw file with one event."""
    key = f"events/segment-logs/{source}/{OCTOBER_1}/{id}.gz"
    body = gzip.compress(as_line(order(id, "2026-10-01T07:00")))
    aws.client("s3").put_object(Bucket=LAKE, Key=key, Body=body)


@pytest.fixture
def settings_file(aws: AwsServer, folder: Path) -> Path:
    aws.bucket(LAKE)
    put_event(aws, "m1")
    (folder / "lake.yaml").write_text(SETTINGS)
    return folder / "lake.yaml"


@pytest.fixture
def role(aws: AwsServer, settings_file: Path, become: Become) -> str:
    """The role of a lake on EMR, which the user of the commands may assume."""
    put_event(aws, "m1", "wX3mQ8rTz")
    arn = aws.role(external_id="P3IMS7SBDH")
    grant(aws, all_but())
    on_emr = f"engine: emr\niam_role_arn: {arn}\nemr_cluster_id: {start_cluster(aws, LAKE)}\n"
    settings_file.write_text(f"{SETTINGS}  - id: wX3mQ8rTz\n    slug: web_shop\n{on_emr}")
    become()
    return arn


def grant(aws: AwsServer, policy: str) -> None:
    aws.client("iam").put_role_policy(RoleName="datalake", PolicyName="own", PolicyDocument=policy)


@pytest.mark.usefixtures("role")
def test_check_of_a_healthy_lake_leaves_the_bucket_as_it_was(aws: AwsServer) -> None:
    with enforced(aws):
        result = datalake("check")
    found = signs(result)
    cluster = next(what for what in found if what.startswith("cluster "))
    assert found.pop("lifecycle") == "!"
    each = ("role of {}", "archive of {}", "lines of {}", "tables of {}", "database {}")
    expected = {what.format(slug) for what in each for slug in ("ios_prod", "web_shop")}
    expected |= {"settings", "catalog", "database __segment_datalake", "Pipes messages"}
    expected |= {"storage", "segment-stage", "segment-data", "sync_tracking_datasets"}
    assert found == dict.fromkeys([*expected, cluster, f"steps of {cluster.split()[1]}"], "✓")
    assert result.err == ""
    assert {key.split("/")[1] for key in aws.content(LAKE)} == {"segment-logs"}


@pytest.mark.usefixtures("role")
def test_check_reports_a_missing_permission_and_tries_the_rest(aws: AwsServer) -> None:
    grant(aws, all_but("glue:UpdateTable", "elasticmapreduce:AddJobFlowSteps"))
    with enforced(aws):
        found = datalake("check", "--json", code=1).json
    wrong = {one["what"].split(" j-")[0]: one["seen"] for one in found if one["level"] == "error"}
    databases = {f"database {name}" for name in ("__segment_datalake", "ios_prod", "web_shop")}
    assert set(wrong) == databases | {"steps of"}
    assert "glue:UpdateTable" in wrong["database ios_prod"]
    assert "elasticmapreduce:AddJobFlowSteps" in wrong["steps of"]


@pytest.mark.usefixtures("role")
def test_check_reports_a_bucket_that_does_not_exist_as_a_wrong_setting(
    aws: AwsServer, settings_file: Path
) -> None:
    settings_file.write_text(settings_file.read_text().replace(LAKE, "another-bucket"))
    with enforced(aws):
        assert signs(datalake("check", code=2))["storage"] == "✗"


def sync(code: int = 0) -> tuple[Result, Any, dict[str, Any]]:
    """A sync: what it prints, the failure that Dagster shows, and its report."""
    result = datalake("sync", code=code)
    with dg.DagsterInstance.local_temp(".dagster") as instance:
        [run] = instance.get_runs(limit=1)
        logs = instance.all_logs(run.run_id, of_type=dg.DagsterEventType.STEP_FAILURE)
    steps = [entry.dagster_event.step_failure_data for entry in logs if entry.dagster_event]
    reports = datalake("reports", "--json").json
    report: dict[str, Any] = next(
        (line for line in reports if line["dagster_run_id"] == run.run_id), {}
    )
    return result, steps[0].user_failure_data if steps else None, report


@pytest.mark.usefixtures("settings_file", "in_process")
def test_a_missing_permission_is_reported_everywhere_in_the_same_words(
    aws: AwsServer, become: Become
) -> None:
    become(f"s3:GetObject {OBJECTS}/segment-logs/*")
    with enforced(aws):
        result, failure, report = sync(code=1)
    assert report["error"].startswith(
        f"Eventlake does not have permissions to download object from S3 Bucket {LAKE}: "
        f"s3:GetObject on {OBJECTS}/segment-logs/"
    )
    assert report["status"] == "failed"
    assert failure.description == report["error"]
    code = failure.metadata["error_code"].value
    assert code == report["error_code"] == "Segment.InsufficientPermissions"
    assert failure.metadata["policy_statement_to_grant"].value["Effect"] == "Allow"
    assert f"error: ios_prod: {report['error']}" in result.err
    assert "Traceback" not in result.err


@pytest.mark.usefixtures("settings_file", "in_process")
def test_a_refused_sync_succeeds_once_the_permission_is_granted(
    aws: AwsServer, become: Become
) -> None:
    become("glue:CreateTable")
    with enforced(aws):
        sync(code=1)
    become(name="granted")
    with enforced(aws):
        sync()
        reports = datalake("reports", "--json").json
        [counted] = datalake("sql", "SELECT count(*) n FROM ios_prod.track_order", "--json").json
    assert counted == {"n": 1}
    sources = [line for line in reports if line["type"] == "source"]
    assert [line["status"] for line in sources] == ["finished", "finished"]
    assert sum(line["row_count"] for line in sources) == 1


@pytest.mark.usefixtures("in_process")
def test_a_changed_partition_setting_is_reported_everywhere(
    aws: AwsServer, settings_file: Path
) -> None:
    sync()
    put_event(aws, "m2")
    settings_file.write_text(f"{SETTINGS}    date_partition: day\n")
    result, failure, report = sync(code=2)
    assert report["error_code"] == "Segment.InvalidSettings"
    assert report["error"] == failure.description
    assert failure.description.startswith(
        "The Table Partitions configuration for this Data Lake is invalid. The field name does not "
        "appear to map to the data being processed, which likely means it is misconfigured."
    )
    assert "date_partition: 'day', but its tables" in failure.description
    assert failure.description in result.err
