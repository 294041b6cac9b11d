"""What a job tells on its way, from Dagster's own writer to our reader."""

import sys

import pytest
from dagster_pipes import (
    PipesCliArgsParamsLoader,
    PipesContext,
    PipesS3ContextLoader,
    open_dagster_pipes,
)

from datalake_assets.assets.running import new_job
from eventlake.clouds import Access
from eventlake.rules.counts import TableReport, UnitReport
from eventlake.rules.errors import InsufficientPermissions, LakeError, UsageError
from eventlake.runs.verify import CheckResult, ChecksFailed
from eventlake.storage import open_storage
from spark_resources.engines.remote.pipes import PipesFolder
from spark_resources.workers.job_events import (
    JobDone,
    JobFailed,
    Message,
    PatientWriter,
    PipesListener,
    UnitPublished,
    as_json,
    from_json,
    report,
)
from tests.support.lakes.on_emr import Heard
from tests.support.lakes.settings import settings_of
from tests.support.servers.aws import AwsServer

TABLE = TableReport("track_order", "track_order", 3, 2, 1, day_rows={"2026-10-01": 2})
CHECK = CheckResult("shop.track_order", "dedup", False, {"rows": 3, "same_ids": False})


@pytest.fixture
def folder(aws: AwsServer) -> PipesFolder:
    return PipesFolder(open_storage(f"s3://{aws.bucket()}/deep/lake", Access()), "17")


def speak(folder: PipesFolder, aws: AwsServer, patch: pytest.MonkeyPatch) -> dict[str, object]:
    """As a job does, with its arguments; what it was told."""
    patch.setattr(sys, "argv", ["job", *folder.arguments()])
    patch.setattr(PipesContext, "_instance", None)
    s3 = aws.client("s3")
    with open_dagster_pipes(
        params_loader=PipesCliArgsParamsLoader(),
        context_loader=PipesS3ContextLoader(client=s3),
        message_writer=PatientWriter(client=s3, interval=0),
    ) as pipes:
        listener = PipesListener(pipes)
        listener.log("reading")
        listener.warn("a line is odd")
        report(pipes, JobDone(2.0, 100.0))
        return dict(pipes.extras)


def test_a_job_gets_its_context_and_its_messages_reach_the_run(
    folder: PipesFolder, aws: AwsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_of("./x")
    folder.hand_over(new_job(settings, settings.sources[0], "dagster-run"))
    heard = Heard()
    assert list(folder.messages(heard)) == [] and not folder.opened

    told = speak(folder, aws, monkeypatch)

    assert told["job"]["source_id"] == "S1"  # type: ignore[index]
    assert list(folder.messages(heard)) == [JobDone(2.0, 100.0)]
    assert (heard.logged, heard.warnings) == (["reading"], ["a line is odd"])
    assert folder.opened and folder.closed
    assert list(folder.messages(heard)) == []  # each is told once
    files = [file.path for file in folder.storage.files("segment-stage")]
    assert files and all(path.startswith("segment-stage/_pipes/17/") for path in files)
    folder.remove()
    assert folder.storage.files("segment-stage") == []


def test_a_second_run_in_the_same_process_reads_its_own_messages(
    folder: PipesFolder, aws: AwsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for run_id in ("18", "19"):
        own = PipesFolder(folder.storage, run_id)
        folder.storage.write(f"segment-stage/_pipes/{run_id}/context.json", b'{"extras": {}}')
        speak(own, aws, monkeypatch)
        assert list(own.messages(Heard())) == [JobDone(2.0, 100.0)]


def test_what_could_not_be_sent_is_sent_again(
    folder: PipesFolder, aws: AwsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.storage.write("segment-stage/_pipes/17/context.json", b'{"extras": {}}')
    s3 = aws.client("s3")
    put, failures = s3.put_object, iter([True, True])

    def put_object(**what: object) -> object:
        if next(failures, False):
            raise OSError("the network is gone")
        return put(**what)

    monkeypatch.setattr(s3, "put_object", put_object)
    monkeypatch.setattr("spark_resources.workers.job_events.RESEND_SECONDS", (0.1, 0.1, 0.1))
    speak(folder, aws, monkeypatch)

    assert list(folder.messages(Heard())) == [JobDone(2.0, 100.0)]


@pytest.mark.parametrize(
    "message",
    [
        UnitPublished(3, UnitReport({"shop.track_order": TABLE}, rows_in=3), (CHECK,), 12.5),
        JobDone(1.0, 2.0),
        JobFailed("UsageError", "no such folder", ()),
    ],
)
def test_messages_survive_the_way(message: Message) -> None:
    assert from_json(as_json(message)) == message


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (UsageError("raw folder x is missing"), UsageError),
        (InsufficientPermissions("may not\n  write"), InsufficientPermissions),
        (ValueError("boom"), LakeError),
    ],
)
def test_errors_are_the_same_here_and_there(error: Exception, kind: type[LakeError]) -> None:
    again = JobFailed.of(error).error()

    assert type(again) is kind
    assert str(error) in str(again)


def test_failed_checks_come_with_their_verdicts() -> None:
    failed = JobFailed.of(ChecksFailed([CHECK]))
    again = from_json(as_json(failed))

    assert isinstance(again, JobFailed)
    error = again.error()
    assert isinstance(error, ChecksFailed) and error.results == (CHECK,)


def test_a_published_unit_is_described_in_a_sentence() -> None:
    told = UnitPublished(3, UnitReport({"shop.track_order": TABLE}, rows_in=3), (), 12.5)
    assert str(told) == ("Published manifest 3 after 12 s: 2 of 3 rows into 1 table, 0 files, 0 B")
