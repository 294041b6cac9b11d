"""What AWS refuses reaches the sync report, the Dagster run and the command line alike."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from eventlake.aws.access import forget_sessions
from tests.support.aws.enforced import User, enforced
from tests.support.lakes.archive import Archive, track
from tests.support.servers.aws import AwsServer
from tests.support.terminal import Said, Terminal

LAKE = "lake-bucket"
OBJECTS = f"arn:aws:s3:::{LAKE}"
SETTINGS = f"""\
workspace_id: P3IMS7SBDH
storage: s3://{LAKE}
catalog: glue
region: eu-west-1
sources:
  - id: 9IP56Shn6
    slug: ios_prod
"""
NO = "Datalake does not have permissions to"


@dataclass(frozen=True)
class Told:
    """Of a failed sync: what was printed, what Dagster shows, what the report says."""

    said: Said
    description: str
    metadata: dict[str, Any]
    report: dict[str, Any] | None


@pytest.fixture
def become(aws: AwsServer, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """From now on commands are run by somebody who may not do some things."""

    def become(*denied: str, name: str = "dagster") -> None:
        for variable, value in User(aws, denied, name).environment.items():
            monkeypatch.setenv(variable, value)
        forget_sessions()

    return become


@pytest.fixture
def bucket(aws: AwsServer, tmp_path: Path) -> None:
    """With one raw file."""
    aws.bucket(LAKE)
    put_raw(aws, tmp_path, "m1")


def put_raw(aws: AwsServer, tmp_path: Path, message_id: str) -> None:
    folder = tmp_path / "raw"
    Archive(folder / "segment-logs/9IP56Shn6").day("2026-10-01").file(
        message_id, track("Order", message_id, "2026-10-01T07:00")
    )
    for file in folder.rglob(f"{message_id}*"):
        key = str(file.relative_to(folder))
        aws.client("s3").put_object(Bucket=LAKE, Key=key, Body=file.read_bytes())


@pytest.fixture
def sync(
    aws: AwsServer, terminal: Terminal, tmp_path: Path, in_process: object
) -> Callable[[], Told]:
    """Types `datalake sync`, and gathers what is told of it everywhere."""

    def sync() -> Told:
        said = terminal.run("sync")
        with dg.DagsterInstance.local_temp(str(tmp_path / ".dagster")) as instance:
            [run] = instance.get_runs(limit=1)
            logs = instance.all_logs(run.run_id, of_type=dg.DagsterEventType.STEP_FAILURE)
        told = [
            event.step_failure_data.user_failure_data
            for event in (entry.dagster_event for entry in logs)
            if event and event.step_failure_data
        ]
        metadata = {} if not told or told[0] is None else told[0].metadata
        return Told(
            said,
            told[0].description or "" if told and told[0] else "",
            {key: entry.value for key, entry in metadata.items()},
            report_of(aws, run.run_id),
        )

    (tmp_path / "lake.yaml").write_text(SETTINGS)
    return sync


def report_of(aws: AwsServer, dagster_run_id: str) -> dict[str, Any] | None:
    """The source's line of a run's report, as it lies in the bucket."""
    s3 = aws.client("s3")
    try:
        listed = s3.list_objects_v2(Bucket=LAKE, Prefix="segment-data/reports/")
    except s3.exceptions.NoSuchBucket:
        return None
    for one in listed.get("Contents", ()):
        body = s3.get_object(Bucket=LAKE, Key=one["Key"])["Body"].read()
        line: dict[str, Any] = json.loads(body.splitlines()[0])
        if line["dagster_run_id"] == dagster_run_id:
            return line
    return None


@pytest.mark.usefixtures("bucket")
def test_a_missing_permission_is_reported_everywhere_in_the_same_words(
    aws: AwsServer, become: Callable[..., None], sync: Callable[[], Told]
) -> None:
    begins = f"{NO} download objects from S3 bucket {LAKE}: s3:GetObject on {OBJECTS}/segment-logs/"
    become(f"s3:GetObject {OBJECTS}/segment-logs/*")
    with enforced(aws):
        told = sync()
    assert told.report is not None
    error = told.report["error"]
    assert error.startswith(begins)
    assert (told.report["status"], told.report["error_code"]) == (
        "failed",
        "Segment.InsufficientPermissions",
    )
    assert told.description == error
    assert told.metadata["error_code"] == "Segment.InsufficientPermissions"
    assert told.metadata["policy_statement_to_grant"]["Effect"] == "Allow"
    assert told.said.code == 1
    assert f"error: ios_prod: {error}" in told.said.err
    assert "Traceback" not in told.said.err


@pytest.mark.usefixtures("bucket")
def test_what_was_refused_goes_on_when_it_is_granted(
    aws: AwsServer, become: Callable[..., None], sync: Callable[[], Told], terminal: Terminal
) -> None:
    become("glue:CreateTable")
    with enforced(aws):
        assert sync().said.code == 1
    become(name="granted")
    with enforced(aws):
        assert sync().said.code == 0
        reports = terminal.run("reports", "--json").json
        [counted] = terminal.run(
            "sql", "SELECT count(*) n FROM ios_prod.track_order", "--json"
        ).json
    assert counted == {"n": 1}
    assert [line["status"] for line in reports if line["type"] == "source"] == [
        "finished",
        "finished",
    ]
    assert sum(line["row_count"] for line in reports if line["type"] == "source") == 1


@pytest.mark.usefixtures("bucket")
def test_a_partition_setting_that_does_not_fit(
    aws: AwsServer, sync: Callable[[], Told], tmp_path: Path
) -> None:
    assert sync().said.code == 0
    put_raw(aws, tmp_path, "m2")
    (tmp_path / "lake.yaml").write_text(f"{SETTINGS}    date_partition: day\n")
    told = sync()
    assert told.report is not None
    assert told.report["error_code"] == "Segment.InvalidSettings"
    assert told.report["error"] == told.description
    assert told.description.startswith("Table partitions configuration of source 'ios_prod' is")
    assert "date_partition: 'day', but its tables" in told.description
    assert told.description in told.said.err
    assert told.said.code == 2
