"""Runs on EMR that end before they are done: failed, silent, cancelled, refused."""

from pathlib import Path

import pytest
from moto.core.exceptions import JsonRESTError
from moto.core.responses import ActionResult
from moto.emr.responses import ElasticMapReduceResponse

from eventlake.rules import paths
from eventlake.rules.errors import InsufficientPermissions, LakeError
from spark_resources.engines.emr.listen import StepFailed
from spark_resources.engines.emr.run import EmrRun
from tests.support.lakes.on_emr import BOTH_DAYS, EmrLake, Quick
from tests.support.servers.emr_node import PYTHON, gated, shell


def test_a_failed_step_is_a_failed_run_with_the_end_of_its_log(emr_lake: EmrLake) -> None:
    emr_lake.put_day("2026-10-01", 1)
    emr_lake.emr.command = shell("echo no such module >&2; exit 3")

    with pytest.raises(StepFailed, match=r"ended as FAILED .* no such module") as failed:
        list(emr_lake.run())

    assert f"s3://lake-bucket/logs/{emr_lake.cluster_id}/steps/" in str(failed.value)
    [source] = emr_lake.report()
    assert (source["status"], source["error_code"]) == ("failed", "Segment.Internal")
    assert "no such module" in source["error"]
    assert source["emr_cluster_id"] == emr_lake.cluster_id
    assert emr_lake.files(paths.open_runs("S1")) == []


def test_a_refusal_that_only_the_log_tells_is_recognised(emr_lake: EmrLake) -> None:
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
    with pytest.raises(InsufficientPermissions, match="check the status of an EMR job"):
        list(EmrRun(job, emr_lake.heard, PYTHON, Quick()).units())

    [source] = emr_lake.report()
    assert source["error_code"] == "Segment.InsufficientPermissions"
    assert emr_lake.files("segment-stage") == [staged]
    assert len(emr_lake.files(paths.open_runs("S1"))) == 1  # the next run finds it, and closes it


def test_a_step_that_says_nothing_is_a_failure_even_if_emr_is_content(emr_lake: EmrLake) -> None:
    emr_lake.put_day("2026-10-01", 1)
    emr_lake.emr.command = shell("exit 0")

    with pytest.raises(StepFailed, match="ended as COMPLETED without having said"):
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
    with pytest.raises(StepFailed):
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
    emr_lake.emr.command = shell("trap 'exit 143' TERM; sleep 600 & wait")

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
