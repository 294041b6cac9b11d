"""Runs that may not publish what they made: nothing of it is seen, and the report says why."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from eventlake.load.seen import Seen
from eventlake.load.stage_job import StageJob
from eventlake.load.write import LoadedFile, LoadJob
from eventlake.rules import paths
from eventlake.rules.errors import ConservationError
from eventlake.runs.verify import CHECKS, ChecksFailed
from tests.support.faults.flows import Raises, flow
from tests.support.lakes.archive import identify, track
from tests.support.lakes.in_process import InProcess
from tests.support.lakes.runs import SOURCE_ID, Runs


def changed(**fields: Callable[[LoadedFile], object]) -> type[InProcess]:
    """Reports its first file with other fields."""

    def change(_: LoadJob, files: list[LoadedFile]) -> list[LoadedFile]:
        first, *others = files
        new = {name: field(first) for name, field in fields.items()}
        return [msgspec.structs.replace(first, **new), *others]

    return flow(after_load=change)


def forget_a_line(_: StageJob, seen: list[Seen]) -> None:
    """Reads a line that ends in none of the counts."""
    seen[0].files[0].rows += 1


LOSES_A_ROW = changed(rows=lambda file: file.rows - 1)
WRITES_ANOTHER_TYPE = changed(
    type_problems=lambda _: ("event: int64 in the file, string in the table",)
)
WRITES_THE_WRONG_ROWS = changed(checksum=lambda file: file.checksum ^ 1)
RUNS_OUT_OF_DISK = flow(after_load=Raises(OSError("no space left")))
IS_CANCELLED = flow(before_load=Raises(KeyboardInterrupt()))


@pytest.fixture
def archived(runs: Runs) -> Runs:
    runs.archive.day("2026-10-01").file(
        "a", track("Order", "m1", "2026-10-01T07:00"), identify("m2", "2026-10-01T07:00")
    )
    return runs


def line_of(runs: Runs, run: str) -> dict[str, Any]:
    """A failed run has the line of the source alone."""
    [line] = runs.reports()[run]
    assert line["type"] == "source"
    return line


@pytest.mark.parametrize(
    ("flow", "failed"),
    [
        (LOSES_A_ROW, {"dedup", "conservation"}),
        (WRITES_ANOTHER_TYPE, {"types"}),
        (WRITES_THE_WRONG_ROWS, {"dedup"}),
    ],
)
def test_a_check_that_fails_stops_the_run_and_names_itself(
    archived: Runs, flow: type[InProcess], failed: set[str]
) -> None:
    archived.flow = flow
    with pytest.raises(ChecksFailed) as caught:
        archived.sync()
    results = caught.value.results
    assert {result.check for result in results if not result.passed} == failed
    assert {(result.table, result.check) for result in results} == {
        (table, check) for table in ("shop.identify", "shop.track_order") for check in CHECKS
    }
    line = line_of(archived, "R1")
    assert (line["status"], line["error_code"]) == ("failed", "Segment.Internal")
    assert all(name in line["error"] for name in failed)
    assert (line["row_count"], line["rows_in"]) == (0, 0)


@pytest.mark.parametrize(
    "flow",
    [
        LOSES_A_ROW,
        WRITES_ANOTHER_TYPE,
        flow(after_stage=forget_a_line),
        RUNS_OUT_OF_DISK,
        IS_CANCELLED,
    ],
)
def test_what_may_not_be_published_leaves_no_trace(archived: Runs, flow: type[InProcess]) -> None:
    archived.flow = flow
    with pytest.raises((ChecksFailed, ConservationError, OSError, KeyboardInterrupt)):
        archived.sync()
    assert line_of(archived, "R1")["status"] == "failed"
    assert archived.tables() == []
    assert (archived.ledger(), archived.index(), archived.state().manifest) == ({}, {}, 0)
    assert archived.storage.files("segment-stage") == []
    assert archived.storage.files("segment-data/data") == []
    assert archived.storage.files(paths.open_runs(SOURCE_ID)) == []
    assert archived.storage.read(paths.lease(SOURCE_ID)) is None
    archived.flow = InProcess
    report = archived.sync()
    assert (report.row_count, report.duplicates) == (2, 0)


def test_a_source_that_does_not_balance_publishes_nothing(archived: Runs) -> None:
    archived.flow = flow(after_stage=forget_a_line)
    with pytest.raises(ConservationError, match="3 came in, but 2 loaded"):
        archived.sync()
    assert "The rows of the source do not balance" in line_of(archived, "R1")["error"]


@pytest.mark.parametrize(
    ("flow", "words"),
    [(RUNS_OUT_OF_DISK, "OSError: no space left"), (IS_CANCELLED, "The run was cancelled")],
)
def test_the_report_says_what_ended_the_run(
    archived: Runs, flow: type[InProcess], words: str
) -> None:
    archived.flow = flow
    with pytest.raises((OSError, KeyboardInterrupt)):
        archived.sync()
    line = line_of(archived, "R1")
    assert line["error"].startswith(words)
    assert line["error_code"] == "Segment.Internal"


def test_a_sync_that_fails_in_its_second_folder_keeps_and_counts_the_first(archived: Runs) -> None:
    archived.archive.day("2026-10-02").file("a", track("Order", "m3", "2026-10-02T07:00"))

    archived.flow = flow(before_load=Raises(OSError("no space left"), at=2))
    with pytest.raises(OSError, match="no space"):
        archived.sync()
    line = line_of(archived, "R1")
    assert (line["status"], line["row_count"], line["rows_in"]) == ("failed", 2, 2)
    assert archived.ids("track_order") == ["m1"]
    archived.flow = InProcess
    assert archived.sync().row_count == 1
    assert archived.ids("track_order") == ["m1", "m3"]


def test_a_replay_that_fails_leaves_the_range_as_it_was(archived: Runs) -> None:
    archived.sync()
    before = archived.partitions("track_order")
    archived.flow = LOSES_A_ROW
    with pytest.raises(ChecksFailed):
        archived.replay("2026-10-01", "2026-10-02")
    assert archived.partitions("track_order") == before
    line = line_of(archived, "R2")
    assert (line["replay"], line["status"]) == (True, "failed")
