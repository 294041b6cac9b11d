"""Refused runs: the report and the error name the cause."""

from pathlib import Path
from typing import Any, NoReturn

import pytest

from eventlake.catalog.local import LocalCatalog
from eventlake.rules import paths
from eventlake.rules.errors import InsufficientPermissions, ServiceTrouble, UsageError
from eventlake.runs.failures import REFUSED, failure_reported
from eventlake.runs.sync import sync
from eventlake.runs.unit import Window
from eventlake.state.manifest import RunKind
from eventlake.storage import LocalStorage
from tests.support.faults.flows import Raises, flow
from tests.support.lakes.archive import order
from tests.support.lakes.runs import SOURCE_ID, Runs, utc

ARROW = (
    "When reading information for key 'segment-logs/S1/a.gz' in bucket 'b': AWS Error "
    "ACCESS_DENIED during HeadObject operation: No response body."
)


@pytest.fixture
def archived(runs: Runs) -> Runs:
    runs.archive.day("2026-10-01").file("a", order("m1", "2026-10-01T07:00"))
    return runs


def source_line(runs: Runs, run: str) -> dict[str, Any]:
    return runs.reports()[run][0]


def refuse(*_: object, **__: object) -> NoReturn:
    raise InsufficientPermissions("No right to do it.")


def test_refused_requests_are_repeated(archived: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """A catalog that refuses is reported, and what was committed is published later."""
    with monkeypatch.context() as patch:
        patch.setattr(LocalCatalog, "create_tables", refuse)
        with pytest.raises(InsufficientPermissions):
            archived.sync()
    line = source_line(archived, "R1")
    assert (line["status"], line["error"]) == ("failed", "No right to do it.")
    assert line["error_code"] == "Segment.InsufficientPermissions"
    assert archived.storage.files(paths.stage(SOURCE_ID, "R1"))  # it is needed yet
    archived.sync()
    assert archived.ids("track_order") == ["m1"]
    assert [source_line(archived, run)["status"] for run in ("R1", "R2")] == ["finished"] * 2
    assert [source_line(archived, run)["row_count"] for run in ("R1", "R2")] == [1, 0]
    assert archived.storage.files(paths.stage(SOURCE_ID, "R1")) == []


def test_errors_of_arrow_and_tasks_are_recognised(archived: Runs) -> None:
    error = RuntimeError(f"Job aborted: Traceback\n  x\nOSError: {ARROW}\n\n\tat org.apache")
    archived.flow = flow(before_stage=Raises(error))
    context = archived.context()
    with (
        pytest.raises(InsufficientPermissions) as caught,
        failure_reported(context.storage, context.catalog, context.facts),
    ):
        sync(context)
    line = source_line(archived, "R1")
    assert line["error_code"] == "Segment.InsufficientPermissions"
    assert line["error"] == str(caught.value)
    assert "s3:GetObject on arn:aws:s3:::b/segment-logs/S1/a.gz was refused" in line["error"]


@pytest.mark.parametrize(
    ("error", "replay", "reported"),
    [
        (ServiceTrouble("S3 is away."), False, "S3 is away."),
        (ServiceTrouble("S3 is away."), True, "S3 is away."),
        (UsageError("There is no archive."), False, "There is no archive."),
        (UsageError("That is no full hour."), True, f"{REFUSED}That is no full hour."),
    ],
    ids=["sync", "replay", "setting", "request"],
)
def test_early_ends_have_a_report(
    runs: Runs, error: Exception, replay: bool, reported: str
) -> None:
    day = Window(utc("2026-10-01"), utc("2026-10-02"))
    kind, window = (RunKind.REPLAY, day) if replay else (RunKind.SYNC, None)
    facts = runs.context(kind, window).facts
    with pytest.raises(type(error)), failure_reported(runs.storage, runs.catalog, facts):
        raise error
    assert [line[0]["error"] for line in runs.reports().values()] == [reported]
    assert runs.storage.files(paths.open_runs(SOURCE_ID)) == []


class OnlyReports(LocalStorage):
    """Lets nothing be read, removed or written but reports."""

    def read(self, path: str) -> NoReturn:
        refuse()

    def delete(self, path: str) -> None:
        refuse()

    def write(self, path: str, data: bytes) -> None:
        if not path.startswith("segment-data/reports/"):
            refuse()
        super().write(path, data)


def test_where_nothing_but_the_report_can_be_written_it_is(runs: Runs, tmp_path: Path) -> None:
    storage = OnlyReports(str(tmp_path))
    cause = pytest.raises(ServiceTrouble, match="the cause")
    with cause, failure_reported(storage, LocalCatalog(storage), runs.context().facts):
        raise ServiceTrouble("the cause")
    assert source_line(runs, "R1")["error"] == "the cause"


def test_the_first_failure_is_reported(archived: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalStorage, "delete_folder", refuse)
    monkeypatch.setattr(LocalStorage, "delete", refuse)
    archived.flow = flow(before_load=Raises(ServiceTrouble("the cause")))
    with pytest.raises(ServiceTrouble, match="the cause"):
        archived.sync()
    assert source_line(archived, "R1")["error"] == "the cause"
