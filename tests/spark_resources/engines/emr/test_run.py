"""Runs on EMR, and how they end."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from moto.core.exceptions import JsonRESTError
from moto.core.responses import ActionResult
from moto.emr.responses import ElasticMapReduceResponse

from eventlake.aws.access import forget_sessions
from eventlake.rules import paths
from eventlake.rules.errors import InsufficientPermissions, InvalidSetting, LakeError
from eventlake.runs.open_runs import OpenRun
from eventlake.storage.documents import decode
from spark_resources.engines.emr.cluster import SUPPORTED
from spark_resources.engines.remote.following import EndedWithoutReport
from tests.support.lakes.on_emr import BOTH_DAYS, EmrLake, Quick
from tests.support.servers.emr_node import bare_start, gated, shell


def test_a_sync_is_a_step_on_the_cluster_of_the_settings(emr_lake: EmrLake) -> None:
    emr_lake.put_day("2026-10-01", 3)

    [unit] = emr_lake.run()

    assert unit.report.row_count == 3
    assert {check.check for check in unit.checks} == {"dedup", "types", "conservation"}
    source, table = emr_lake.report()
    assert (source["status"], source["emr_cluster_id"]) == ("finished", emr_lake.cluster_id)
    assert (table["table_name"], table["row_count"]) == ("track_order", 3)
    assert source["s3_bucket"] == "lake-bucket"
    # What the job said on its way, in its own words.
    assert any("reading 1 raw file" in line for line in emr_lake.heard.logged)
    [told] = [line for line in emr_lake.heard.logged if line.startswith("Published")]
    assert "manifest 1" in told and "3 of 3 rows into 1 table" in told
    # Nothing of the conversation stays.
    assert emr_lake.files("segment-stage") == []


def test_the_job_gets_neither_a_role_nor_a_secret(emr_lake: EmrLake) -> None:
    handed_over = []
    kept = type(emr_lake.lake.storage).write

    def write(storage: Any, path: str, data: bytes) -> None:
        if path.endswith("context.json"):
            handed_over.append(json.loads(data))
        kept(storage, path, data)

    emr_lake.put_day("2026-10-01", 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(emr_lake.lake.storage), "write", write)
        list(emr_lake.run())

    [context] = handed_over
    settings = context["extras"]["job"]["settings_json"]
    assert emr_lake.lake.settings.iam_role_arn
    assert settings["iam_role_arn"] is None and settings["region"] == "eu-west-1"
    assert [s["iam_role_arn"] for s in settings["sources"]] == [None]
    [step] = emr_lake.emr.steps(emr_lake.cluster_id)
    assert "arn:aws:iam" not in " ".join(step.args)


def test_a_changed_cluster_is_used_from_the_next_sync_on(emr_lake: EmrLake) -> None:
    emr_lake.put_day("2026-10-01", 1)
    list(emr_lake.run())
    other = emr_lake.emr.start_cluster("lake-bucket")
    emr_lake.change(emr_cluster_id=other)
    emr_lake.put_day("2026-10-02", 2)
    list(emr_lake.run())

    assert emr_lake.report()[0]["emr_cluster_id"] == other
    assert len(emr_lake.emr.steps(emr_lake.cluster_id)) == len(emr_lake.emr.steps(other)) == 1


def test_a_replay_has_its_own_cluster_which_ends_with_it(emr_lake: EmrLake, tmp_path: Path) -> None:
    emr_lake.put_day("2026-10-01", 3)
    emr_lake.put_day("2026-10-02", 4)
    gate = tmp_path / "second day"
    emr_lake.emr.command = gated(gate, units=1)
    units = emr_lake.run(window=BOTH_DAYS)

    first = next(units)
    own = first.manifest.run.emr_cluster_id
    # The first day is told while the cluster works on the second.
    assert emr_lake.emr.at_work and emr_lake.emr.state(own) != "TERMINATED"
    gate.touch()
    [second] = units

    assert (first.report.row_count, second.report.row_count) == (3, 4)
    assert own != emr_lake.cluster_id and emr_lake.emr.state(own) == "TERMINATED"
    assert emr_lake.emr.state(emr_lake.cluster_id) != "TERMINATED"
    source = emr_lake.report()[0]
    assert (source["replay"], source["emr_cluster_id"]) == (True, own)
    _, asked = emr_lake.emr.asked  # it ends even if our process dies
    assert asked["Instances"]["KeepJobFlowAliveWhenNoSteps"] is False
    assert asked["AutoTerminationPolicy"] == {"IdleTimeout": 3600}
    assert [step["ActionOnFailure"] for step in asked["Steps"]] == ["TERMINATE_CLUSTER"]


def test_a_run_may_take_as_long_as_it_takes(emr_lake: EmrLake, tmp_path: Path) -> None:
    """Botocore's own waiter gives up after thirty minutes."""
    emr_lake.put_day("2026-10-01", 1)
    arrived = tmp_path / "forty minutes have passed"

    @dataclass(frozen=True)
    class Hasty(Quick):
        """Minutes pass in no time."""

        passed: list[float] = field(default_factory=list)
        messages_seconds: float = 10.0
        status_seconds: float = 10.0

        def now(self) -> float:
            return sum(self.passed)

        def sleep(self, seconds: float) -> None:
            self.passed.append(seconds)
            if self.now() > 40 * 60:
                arrived.touch()
                super().sleep(seconds)

    pace = Hasty()
    emr_lake.emr.command = gated(arrived, units=0)
    [unit] = emr_lake.run(pace)

    assert unit.report.row_count == 1
    assert pace.now() > 40 * 60


def test_while_emr_does_not_respond_the_run_continues(
    emr_lake: EmrLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    emr_lake.put_day("2026-10-01", 1)
    asked = []
    known = ElasticMapReduceResponse.describe_step

    def describe_step(self: ElasticMapReduceResponse) -> ActionResult:
        asked.append(1)
        if len(asked) < 3:
            raise JsonRESTError("ThrottlingException", "Rate exceeded")
        return known(self)

    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")  # else botocore itself tries for a minute
    monkeypatch.setattr(ElasticMapReduceResponse, "describe_step", describe_step)
    forget_sessions()
    [unit] = emr_lake.run()

    assert unit.report.row_count == 1
    assert sum("Rate exceeded" in warning for warning in emr_lake.heard.warnings) == 2


def test_a_cluster_that_has_ended_is_reported_with_the_setting(emr_lake: EmrLake) -> None:
    emr_lake.put_day("2026-10-01", 1)
    emr_lake.emr.server.client("emr").terminate_job_flows(JobFlowIds=[emr_lake.cluster_id])

    with pytest.raises(InvalidSetting, match=r"`emr_cluster_id`: EMR cluster j-\w+ is TERMINATED"):
        list(emr_lake.run())

    assert emr_lake.report()[0]["error_code"] == "Segment.InvalidSettings"


@pytest.mark.parametrize("release", ["emr-7.13.0", "emr-6.15.0"])
def test_a_release_with_an_older_spark_is_refused(emr_lake: EmrLake, release: str) -> None:
    old = emr_lake.emr.start_cluster("lake-bucket", ReleaseLabel=release)
    emr_lake.change(emr_cluster_id=old)

    with pytest.raises(InvalidSetting, match=f"runs release {release}.* {SUPPORTED} or newer"):
        list(emr_lake.run())


def test_until_the_job_begins_others_see_that_there_is_a_run(emr_lake: EmrLake) -> None:
    emr_lake.put_day("2026-10-01", 1)
    emr_lake.emr.command = shell("sleep 600")
    seen: list[OpenRun] = []

    def look() -> None:
        for path in emr_lake.files(paths.open_runs("S1")):
            seen.append(decode(emr_lake.lake.storage.read(path) or b"", OpenRun, path))
        emr_lake.emr.kill_all()

    with pytest.raises(EndedWithoutReport):
        list(emr_lake.run(Quick(meanwhile=look)))

    assert seen[0].holder.alive and seen[0].holder.runs_here


def test_a_dry_run_shows_what_a_replay_would_do(emr_lake: EmrLake) -> None:
    emr_lake.put_day("2026-10-01", 3)
    emr_lake.put_day("2026-10-02", 4)
    job = emr_lake.job(window=BOTH_DAYS, dry_run=True)
    first, second = emr_lake.run_job(job)

    assert (first.report.row_count, second.report.row_count) == (3, 4)
    assert [(p.table, p.values, p.rows_now, p.rows_then) for p in second.partitions] == [
        ("shop.track_order", ("2026-10-02", "05"), 0, 4)
    ]
    assert len(emr_lake.emr.steps(emr_lake.cluster_id)) == 1
    left = [*emr_lake.files("segment-data"), *emr_lake.files("segment-stage")]
    assert [path for path in left if "/_state/code/" not in path] == []  # but for the program


def test_a_failed_step_is_a_failed_run_with_the_end_of_its_log(emr_lake: EmrLake) -> None:
    emr_lake.put_day("2026-10-01", 1)
    emr_lake.emr.command = shell("echo no such module >&2; exit 3")

    with pytest.raises(EndedWithoutReport, match=r"ended as FAILED .* no such module") as failed:
        list(emr_lake.run())

    assert f"s3://lake-bucket/logs/{emr_lake.cluster_id}/steps/" in str(failed.value)
    [source] = emr_lake.report()
    assert (source["status"], source["error_code"]) == ("failed", "Segment.Internal")
    assert "no such module" in source["error"]
    assert source["emr_cluster_id"] == emr_lake.cluster_id
    assert emr_lake.files(paths.open_runs("S1")) == []


def test_a_job_that_cannot_import_its_packages_reports_it_without_the_log(
    emr_lake: EmrLake,
) -> None:
    """EMR copies logs to S3 some minutes later."""
    emr_lake.put_day("2026-10-01", 1)
    emr_lake.emr.command = bare_start  # the archive with packages is empty, see `emr_lake`
    emr_lake.emr.logs_arrive = False

    with pytest.raises(LakeError, match=r"could not start: BadZipFile: File is not a zip file"):
        list(emr_lake.run())

    [trace] = [line for line in emr_lake.heard.warnings if "Traceback" in line]
    assert "emr_start.py" in trace
    [source] = emr_lake.report()
    assert "could not start" in source["error"]
    assert emr_lake.files("segment-stage") == []
    assert emr_lake.files(paths.open_runs("S1")) == []


def test_a_refusal_that_is_only_in_the_log_is_recognised(emr_lake: EmrLake) -> None:
    emr_lake.put_day("2026-10-01", 1)
    refused = (
        "botocore.exceptions.ClientError: An error occurred (AccessDenied) when calling the "
        "GetObject operation: User: arn:aws:sts::123456789012:assumed-role/emr/i-1 is not "
        "authorized to perform: s3:GetObject on resource: arn:aws:s3:::lake-bucket/x"
    )
    emr_lake.emr.command = shell(f"echo '{refused}' >&2; exit 1")

    with pytest.raises(InsufficientPermissions, match="s3:GetObject"):
        list(emr_lake.run())

    assert emr_lake.report()[0]["error_code"] == "Segment.InsufficientPermissions"


def test_while_a_job_may_be_at_work_what_it_staged_stays(
    emr_lake: EmrLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may yet be committed; to look at the step is refused, so nobody knows."""
    emr_lake.put_day("2026-10-01", 1)
    emr_lake.emr.command = shell("sleep 600")

    def describe_step(self: ElasticMapReduceResponse) -> ActionResult:
        raise JsonRESTError("AccessDeniedException", "You may not look")

    monkeypatch.setattr(ElasticMapReduceResponse, "describe_step", describe_step)
    job = emr_lake.job()
    staged = f"{paths.stage('S1', job.run_id)}/rows.parquet"
    emr_lake.lake.storage.write(staged, b"rows")
    with pytest.raises(InsufficientPermissions, match="check the status of EMR Job"):
        list(emr_lake.run_job(job))

    [source] = emr_lake.report()
    assert source["error_code"] == "Segment.InsufficientPermissions"
    assert emr_lake.files("segment-stage") == [staged]
    assert len(emr_lake.files(paths.open_runs("S1"))) == 1  # the next run finds it, and closes it


def test_a_step_without_messages_is_a_failure_whatever_emr_reports(
    emr_lake: EmrLake,
) -> None:
    emr_lake.put_day("2026-10-01", 1)
    emr_lake.emr.command = shell("exit 0")

    with pytest.raises(EndedWithoutReport, match="ended as COMPLETED without reporting"):
        list(emr_lake.run())

    assert emr_lake.report()[0]["status"] == "failed"


def test_what_a_job_published_before_it_died_is_in_its_report(
    emr_lake: EmrLake, tmp_path: Path
) -> None:
    emr_lake.put_day("2026-10-01", 3)
    emr_lake.put_day("2026-10-02", 4)
    emr_lake.emr.command = gated(tmp_path / "never", units=1)
    units = emr_lake.run(window=BOTH_DAYS)
    first = next(units)
    emr_lake.emr.kill_all()
    with pytest.raises(EndedWithoutReport):
        list(units)

    [source] = emr_lake.report()
    assert (source["status"], source["row_count"]) == ("failed", first.report.row_count)
    assert emr_lake.emr.state(first.manifest.run.emr_cluster_id) == "TERMINATED"


def test_an_error_of_the_job_arrives_as_the_same_error(emr_lake: EmrLake) -> None:
    emr_lake.put_day("2026-10-01", 1)
    list(emr_lake.run())
    emr_lake.change(sources=[{"id": "S1", "slug": "shop", "date_partition": "day"}])

    with pytest.raises(LakeError, match="date_partition") as refused:
        list(emr_lake.run())

    [source] = emr_lake.report()
    assert source["error_code"] == refused.value.error_code == "Segment.InvalidSettings"
    assert "date_partition" in source["error"]
    assert emr_lake.files(paths.open_runs("S1")) == []


def test_a_run_that_is_left_is_cancelled_on_the_cluster(emr_lake: EmrLake) -> None:
    emr_lake.put_day("2026-10-01", 1)
    emr_lake.emr.command = shell("exec sleep 600")

    pressed = iter([True])

    def interrupt() -> None:
        if emr_lake.emr.at_work and next(pressed, False):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(emr_lake.run(Quick(meanwhile=interrupt, cancel_seconds=60.0)))

    [(step_id, how)] = emr_lake.emr.cancelled
    assert how == "SEND_INTERRUPT"
    [step] = emr_lake.emr.steps(emr_lake.cluster_id)
    assert (step.id, step.state) == (step_id, "CANCELLED")
    [source] = emr_lake.report()
    assert source["error"] == "The run was cancelled before it was done."
    assert emr_lake.files("segment-stage") == []


def test_a_cancelled_replay_leaves_no_cluster_behind(emr_lake: EmrLake, tmp_path: Path) -> None:
    emr_lake.put_day("2026-10-01", 3)
    emr_lake.emr.command = gated(tmp_path / "never", units=1)
    units = emr_lake.run(window=BOTH_DAYS)
    first = next(units)
    assert emr_lake.emr.at_work

    with pytest.raises(KeyboardInterrupt):
        units.throw(KeyboardInterrupt())  # type: ignore[attr-defined]

    own = first.manifest.run.emr_cluster_id
    assert emr_lake.emr.state(own) == "TERMINATED" and not emr_lake.emr.at_work
    [source] = emr_lake.report()
    assert (source["status"], source["row_count"]) == ("failed", 3)
    assert source["emr_cluster_id"] == own
    assert emr_lake.files("segment-stage") == []


def test_a_step_that_does_not_heed_the_interrupt_is_killed(emr_lake: EmrLake) -> None:
    emr_lake.put_day("2026-10-01", 1)
    emr_lake.emr.command = shell("trap '' TERM; sleep 600 & wait; sleep 600")
    pressed = iter([True])

    def interrupt() -> None:
        if emr_lake.emr.at_work and next(pressed, False):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(emr_lake.run(Quick(cancel_seconds=1.0, meanwhile=interrupt)))

    assert [how for _, how in emr_lake.emr.cancelled] == ["SEND_INTERRUPT", "TERMINATE_PROCESS"]
