"""Runs on EMR Serverless, and how they end."""

from pathlib import Path

import pytest

from eventlake.rules import paths
from eventlake.rules.errors import InsufficientPermissions, InvalidSetting, LakeError
from spark_resources.engines.remote.following import EndedWithoutReport
from tests.support.lakes.on_emr import BOTH_DAYS, Quick, ServerlessLake
from tests.support.servers.aws import ACCOUNT
from tests.support.servers.emr_serverless import gated, script, submitted, without_our_code


def test_a_sync_is_a_job_run_of_the_application(serverless_lake: ServerlessLake) -> None:
    serverless_lake.put_day("2026-10-01", 3)

    [unit] = serverless_lake.run()

    assert unit.report.row_count == 3
    [run] = serverless_lake.runs
    source, table = serverless_lake.report()
    assert source["status"] == "finished"
    assert source["emr_cluster_id"] == f"{serverless_lake.application_id}/{run.id}"
    assert (table["table_name"], table["row_count"]) == ("track_order", 3)
    assert any("reading 1 raw file" in line for line in serverless_lake.heard.logged)
    assert serverless_lake.files("segment-stage") == []


def test_what_is_submitted(serverless_lake: ServerlessLake) -> None:
    """Its own role and tags, no time limit that a long replay reaches, and logs in the lake."""
    serverless_lake.put_day("2026-10-01", 1)
    serverless_lake.conf = {
        "spark.executor.cores": "8",
        "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -Xss4m",
    }
    list(serverless_lake.run())

    [run] = serverless_lake.runs
    settings, program, arguments = submitted(run)
    assert run.execution_role_arn == f"arn:aws:iam::{ACCOUNT}:role/datalake-jobs"
    assert run.tags is not None and run.tags["vendor"] == "segment"
    assert run.execution_timeout_minutes >= 7 * 24 * 60
    assert program.startswith("s3://lake-bucket/lakes/one/segment-data/_state/code/")
    assert arguments[:2] == [uri.partition("#")[0] for uri in _archives(settings)]
    assert settings["spark.executor.cores"] == "8"
    assert settings["spark.default.parallelism"] == str(8 * 8)
    assert settings["spark.executor.extraJavaOptions"] == "-XX:+UseSerialGC -Xss4m"
    assert settings["spark.python.daemon.module"] == "spark_resources.workers.daemon"
    assert str(serverless_lake.lake.settings.iam_role_arn) not in str(run.job_driver)


def _archives(settings: dict[str, str] | object) -> list[str]:
    assert isinstance(settings, dict)
    environment, code = settings["spark.archives"].split(",")
    assert (environment.partition("#")[2], code.partition("#")[2]) == ("environment", "code")
    return [code, environment]


def test_a_replay_is_a_run_of_its_own_whose_days_arrive_while_it_works(
    serverless_lake: ServerlessLake, tmp_path: Path
) -> None:
    serverless_lake.put_day("2026-10-01", 3)
    serverless_lake.put_day("2026-10-02", 4)
    list(serverless_lake.run())
    gate = tmp_path / "second day"
    serverless_lake.serverless.command = gated(gate, units=1)
    units = serverless_lake.run(window=BOTH_DAYS)

    first = next(units)
    assert serverless_lake.serverless.at_work
    gate.touch()
    [second] = units

    assert (first.report.row_count, second.report.row_count) == (3, 4)
    of_sync, of_replay = serverless_lake.runs
    source = serverless_lake.report()[0]
    assert source["replay"] and source["emr_cluster_id"].endswith(f"/{of_replay.id}")
    assert of_sync.id != of_replay.id


def test_a_failed_job_is_a_failed_run_with_the_end_of_its_log(
    serverless_lake: ServerlessLake,
) -> None:
    serverless_lake.put_day("2026-10-01", 1)
    serverless_lake.serverless.command = script("echo no such module >&2; exit 3")

    with pytest.raises(EndedWithoutReport, match=r"ended as FAILED .* no such module") as failed:
        list(serverless_lake.run())

    [run] = serverless_lake.runs
    place = f"applications/{serverless_lake.application_id}/jobs/{run.id}/SPARK_DRIVER"
    assert f"s3://lake-bucket/lakes/one/logs/{place}" in str(failed.value)
    assert "EMR Serverless says: Job ended with exit code 3." in str(failed.value)
    [source] = serverless_lake.report()
    assert (source["status"], source["error_code"]) == ("failed", "Segment.Internal")
    assert source["emr_cluster_id"] == f"{serverless_lake.application_id}/{run.id}"
    assert serverless_lake.files(paths.open_runs("S1")) == []


def test_a_job_without_messages_is_a_failure_whatever_its_state(
    serverless_lake: ServerlessLake,
) -> None:
    serverless_lake.put_day("2026-10-01", 1)
    serverless_lake.serverless.command = script("exit 0")

    with pytest.raises(EndedWithoutReport, match="ended as SUCCESS without reporting"):
        list(serverless_lake.run())

    assert serverless_lake.report()[0]["status"] == "failed"


def test_a_refusal_that_is_only_in_the_log_is_recognised(serverless_lake: ServerlessLake) -> None:
    serverless_lake.put_day("2026-10-01", 1)
    refused = (
        "botocore.exceptions.ClientError: An error occurred (AccessDenied) when calling the "
        "GetObject operation: User: arn:aws:sts::123456789012:assumed-role/jobs/x is not "
        "authorized to perform: s3:GetObject on resource: arn:aws:s3:::lake-bucket/x"
    )
    serverless_lake.serverless.command = script(f"echo '{refused}' >&2; exit 1")

    with pytest.raises(InsufficientPermissions, match="s3:GetObject"):
        list(serverless_lake.run())


def test_a_job_without_our_code_reports_it_without_the_log(serverless_lake: ServerlessLake) -> None:
    """A container has no `aws`, but boto3."""
    serverless_lake.put_day("2026-10-01", 1)
    serverless_lake.serverless.command = without_our_code
    serverless_lake.serverless.logs_arrive = False

    with pytest.raises(LakeError, match=r"could not start: ModuleNotFoundError: .*spark_resources"):
        list(serverless_lake.run())

    assert serverless_lake.files("segment-stage") == []


def test_a_cancelled_run_cancels_its_job(serverless_lake: ServerlessLake) -> None:
    serverless_lake.put_day("2026-10-01", 1)
    serverless_lake.serverless.command = script("exec sleep 600")
    pressed = iter([True])

    def interrupt() -> None:
        if serverless_lake.serverless.at_work and next(pressed, False):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(serverless_lake.run(Quick(meanwhile=interrupt, cancel_seconds=60.0)))

    [run] = serverless_lake.runs
    assert serverless_lake.serverless.cancelled == [run.id] and run.state == "CANCELLED"
    [source] = serverless_lake.report()
    assert source["error"] == "The run was cancelled before it was done."
    assert serverless_lake.files("segment-stage") == []


def test_a_dry_run_is_a_job_run_as_well(serverless_lake: ServerlessLake) -> None:
    serverless_lake.put_day("2026-10-01", 3)

    [planned] = serverless_lake.run_job(serverless_lake.job(dry_run=True))

    assert planned.report.row_count == 3
    assert len(serverless_lake.runs) == 1


@pytest.mark.parametrize(
    ("application", "problem"),
    [
        ({"releaseLabel": "emr-7.13.0"}, "has release emr-7.13.0, whose Spark is older than 4.0"),
        ({"type": "HIVE"}, "is of type Hive"),
    ],
)
def test_an_application_that_cannot_run_our_jobs_is_refused(
    serverless_lake: ServerlessLake, application: dict[str, str], problem: str
) -> None:
    other = serverless_lake.serverless.create_application(**application)
    serverless_lake.change(emr_serverless_application_id=other)

    with pytest.raises(InvalidSetting, match=f"`emr_serverless_application_id`: .*{problem}"):
        list(serverless_lake.run())


@pytest.mark.parametrize(
    ("setting", "value", "problem"),
    [
        ("emr_serverless_application_id", "00nosuch", "there is no .* application 00nosuch"),
        ("execution_role_arn", "arn:aws:iam::999999999999:role/x", "cannot use the role"),
    ],
)
def test_a_wrong_setting_is_named(
    serverless_lake: ServerlessLake, setting: str, value: str, problem: str
) -> None:
    serverless_lake.change(**{setting: value})

    with pytest.raises(InvalidSetting, match=f"`{setting}`: .*{problem}"):
        list(serverless_lake.run())

    assert serverless_lake.report()[0]["error_code"] == "Segment.InvalidSettings"
