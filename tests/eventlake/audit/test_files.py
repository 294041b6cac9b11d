"""The audit of raw files and data files, and the comparison of their rows."""

from datetime import date
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlake.audit import snapshot
from eventlake.audit.audit import Comparison
from eventlake.audit.rule import Demand, Raw, RawVerdict, Row, RowVerdict, judge
from eventlake.audit.snapshot import FIRST, LAST, Scope, audited_files
from eventlake.rules import paths
from eventlake.rules.errors import SettingsError, StateError, UsageError
from eventlake.runs.archive import Archive
from eventlake.runs.plan import RawFiles
from eventlake.runs.unit import Window
from eventlake.state.ledger import LedgerEntry
from eventlake.storage import StoredFile
from tests.support.lakes.archive import order, page
from tests.support.lakes.runs import Audited, Runs, utc

DAY_1, DAY_2 = "1790812800000", "1790899200000"
A, B, C = (f"segment-logs/S1/{name}.gz" for name in (f"{DAY_1}/a", f"{DAY_2}/b", f"{DAY_2}/c"))


def test_a_file_that_is_not_loaded_yet_is_not_missing(runs: Runs, audited: Audited) -> None:
    runs.archive.day("2026-10-02").file("c", order("m9", "2026-10-02T07:00"), "{")
    found = audited()
    assert found.agrees
    assert found.raw.waiting == (C,)
    assert (found.total.waiting, found.total.rejected) == (1, 3)


def test_rows_that_a_replay_loads_first_are_expected(runs: Runs, audited: Audited) -> None:
    runs.archive.day("2026-10-02").file("c", order("m9", "2026-10-02T07:00"))
    runs.replay("2026-10-02", "2026-10-03")
    found = audited()
    assert found.agrees
    assert (found.total.waiting, found.total.loaded) == (0, 6)
    assert found.raw.waiting == (C,)


def test_the_rest_of_a_file_that_was_broken_waits(runs: Runs, audited: Audited) -> None:
    lines = [order(f"n{n}", "2026-10-02T09:00", note="x" * n * 20) for n in range(20)]
    runs.archive.day("2026-10-02").file("c", *lines, keep=0.6)
    runs.sync()
    broken = audited()
    assert broken.agrees
    loaded = broken.total.loaded - 5
    assert 0 < loaded < 20
    assert broken.total.rejected == 3  # the end of the file is one more
    assert broken.raw.waiting == ()
    runs.archive.day("2026-10-02").file("c", *lines)
    whole = audited()
    assert whole.agrees
    assert (whole.total.loaded, whole.total.waiting) == (5 + loaded, 20 - loaded)
    assert whole.raw.waiting == (C,)
    (partition,) = (p for p in runs.files("track_order") if p.endswith("2026-10-02/hr=09"))
    runs.storage.delete_folder(partition)
    assert audited().total.missing == loaded


def test_a_file_that_changed_after_it_was_loaded_is_reported(runs: Runs, audited: Audited) -> None:
    runs.archive.day("2026-10-02").file("b", order("m5", "2026-10-02T07:00"))
    found = audited()
    assert found.raw.changed == (B,)
    (one,) = found.partitions
    assert sorted(one.examples) == [("missing", "m5"), ("unexpected", "m4")]
    runs.replay("2026-10-02", "2026-10-03")
    assert audited().agrees


@pytest.mark.parametrize("folder_too", [False, True])
def test_rows_of_lost_files_are_unchecked(runs: Runs, audited: Audited, folder_too: bool) -> None:
    (runs.root / B).unlink()
    if folder_too:
        (runs.root / B).parent.rmdir()
    found = audited()
    assert found.agrees
    assert [entry.path for entry in found.raw.gone] == [B]
    assert (found.total.unchecked, found.total.unexpected) == (1, 0)


def test_only_the_hours_of_a_removed_file_are_excused(runs: Runs, audited: Audited) -> None:
    runs.archive.day("2026-10-01").file("a", order("m1", "2026-10-01T07:00"))
    (runs.root / B).unlink()
    found = audited()
    assert {one.partition[:14] for one in found.partitions} == {"day=2026-10-01"}
    assert found.total.unchecked == 1


def test_doubled_rows_are_reported_even_if_their_raw_file_was_removed(
    runs: Runs, audited: Audited
) -> None:
    (runs.root / B).unlink()
    (partition,) = (p for p in runs.files("track_order") if p.endswith("2026-10-02/hr=07"))
    runs.storage.copy(f"{partition}/R1-1-0.parquet", f"{partition}/copy.parquet")
    found = audited()
    assert [(p.doubled, p.examples) for p in found.partitions] == [(1, (("doubled", "m4"),))]
    assert found.total.unchecked == 1


def test_folders_before_the_start_are_not_required(runs: Runs, audited: Audited) -> None:
    runs.set(start="2026-10-01")
    runs.archive.day("2026-09-30").file("z", order("m0", "2026-09-30T07:00"))
    found = audited()
    assert found.agrees
    assert (len(found.raw.before_start), len(found.raw.waiting), found.total.waiting) == (1, 0, 1)
    runs.replay("2026-09-30", "2026-10-01")
    found = audited()
    assert found.agrees
    assert found.total.waiting == 0


def test_the_current_settings_decide(runs: Runs, audited: Audited) -> None:
    runs.set(load_without_message_id=True)
    assert [(p.table, p.missing) for p in audited().partitions] == [("identify", 1)]
    runs.replay("2026-10-01", "2026-10-02")
    assert audited().agrees
    runs.set(skip_events=["Order"])
    found = audited()
    orders = {(p.table, p.expected) for p in found.partitions if p.table != "identify"}
    assert orders == {("track_order", 0)}
    assert found.total.skipped == 6


@pytest.mark.parametrize("limits", [{"columns": 17}, {"tables": 2}, {"catalog_tables": 2}])
def test_what_a_limit_keeps_out_is_rejected_not_missing(
    runs: Runs, audited: Audited, limits: dict[str, int]
) -> None:
    runs.set(limits=limits)
    report = runs.load(
        "2026-10-03",
        order("m6", "2026-10-03T07:00", a=1),
        order("m7", "2026-10-03T07:00", b=1),
        page("p1", "2026-10-03T07:00", b=1, c=2),
        name="c",
    )
    found = audited()
    assert found.agrees
    assert found.total.rejected == report.rejected + 2
    assert found.total.loaded == report.row_count + 5


def test_a_new_place_is_empty(runs: Runs, audited: Audited) -> None:
    runs.set(database="other")
    assert audited().total.missing == 5
    runs.replay("2026-10-01", "2026-10-03")
    assert audited().agrees


@pytest.mark.parametrize(
    ("changed", "refusal"),
    [
        ({"date_partition": "day"}, "date_partition"),
        ({"raw": "nowhere"}, "The raw archive of source 'shop' is not there"),
    ],
)
def test_a_lake_that_cannot_be_compared_is_refused(
    runs: Runs, audited: Audited, changed: dict[str, str], refusal: str
) -> None:
    runs.set(**changed)
    with pytest.raises((SettingsError, UsageError), match=refusal):
        audited()


def test_before_the_first_sync_everything_waits(runs: Runs, audited: Audited) -> None:
    for folder in (paths.STATE, "segment-data/data"):
        runs.storage.delete_folder(folder)
    found = audited()
    assert found.agrees
    assert (found.total.loaded, found.total.waiting) == (0, 7)
    assert len(found.raw.waiting) == 2


ENTRY = LedgerEntry(A, 5, "t1", 10, ("2026-10-01T07", "2026-10-04T00"))


@pytest.mark.parametrize(
    ("start", "end", "read"),
    [
        (None, None, True),
        ("2026-10-01", "2026-10-02", True),
        ("2026-09-30", "2026-10-01", True),
        ("2026-09-29", "2026-09-30T00", False),
        ("2026-10-02", "2026-10-03", True),
        ("2026-10-03", "2026-10-04", False),
        ("2026-10-04T00", "2026-10-04T01", True),  # by what the ledger saw in it
        ("2026-10-04T01", "2026-10-05T01", False),
        ("2026-10-04", None, True),
        ("2026-10-05", None, False),
        (None, "2026-09-29", False),
    ],
)
def test_which_files_are_read(runs: Runs, start: str | None, end: str | None, read: bool) -> None:
    window = Window(utc(start) if start else FIRST, utc(end) if end else LAST)
    archive = Archive({date(2026, 10, 1): [StoredFile(A, 5, "t1")]})
    found = audited_files(RawFiles(archive, {A: ENTRY}), None, Scope(runs.source, window))
    assert bool(found.read) == read


def test_a_commit_that_was_not_applied_is_reported(
    runs: Runs, audited: Audited, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "_PAUSE_SECONDS", 0.0)
    runs.archive.day("2026-10-02").file("c", order("m9", "2026-10-02T07:00"))
    before = runs.storage.read(paths.state_file("S1")) or b""
    runs.sync()
    runs.storage.write(paths.state_file("S1"), before)  # as if the run had died before this
    with pytest.raises(StateError, match=r"Manifest 3 .* `datalake sync --source shop` completes"):
        audited()
    runs.sync()
    assert audited().agrees


WINDOW = 7
# One is the beginning of another, one ends where C would end it.
IDS = st.sampled_from(["m1", "m", "m\0", "M1", ""])
MOMENTS = st.integers(-9, 9)
TABLES = st.sampled_from(["page", "screen", "track_order"])
EVENTS = st.lists(st.tuples(IDS, MOMENTS, TABLES, st.sampled_from(Demand)), max_size=12)
FOUND = st.lists(
    st.tuples(IDS, MOMENTS, TABLES | st.none(), st.booleans(), st.integers(0, 9)), max_size=12
)


def table(columns: str, types: str, rows: list[tuple[object, ...]]) -> pa.Table:
    schema = pa.schema(list(zip(columns.split(), types.split(), strict=True)))
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)


@given(EVENTS, FOUND)
def test_each_id_is_judged_by_itself(
    events: list[tuple[str, int, str, Demand]], found: list[tuple[str, int, str | None, bool, int]]
) -> None:
    with TemporaryDirectory() as folder, Comparison(Path(folder)) as comparison:
        comparison.add(
            "events", table("id received table demand", "string int64 string int8", [*events])
        )
        comparison.add(
            "rows",
            table("id received table judged file", "string int64 string bool int32", [*found]),
        )
        loaded = comparison.loaded()
        judged = {one.id: one for one in comparison.judged(WINDOW)}
    for id in {*(event[0] for event in events), *(row[0] for row in found)}:
        raw = [Raw(*event[1:]) for event in sorted(events, key=itemgetter(1)) if event[0] == id]
        rows = [row for row in sorted(found, key=itemgetter(1)) if row[0] == id]
        expected = judge(raw, [Row(*row[1:4]) for row in rows], WINDOW)
        if id in judged:
            assert judged[id].events == list(zip(raw, expected[0], strict=True))
            assert [(file, verdict) for _, file, verdict in judged[id].rows] == list(
                zip([row[4] for row in rows], expected[1], strict=True)
            )
        else:
            assert expected[0] == [RawVerdict.LOADED] * len(raw)
            assert set(expected[1]) <= {RowVerdict.FINE, RowVerdict.NOT_JUDGED}
            loaded.subtract(event.table for event in raw)
    assert not any(loaded.values())
