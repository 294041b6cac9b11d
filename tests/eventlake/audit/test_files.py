"""The audit of raw files and data files, and the comparison of their rows."""

from datetime import date
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlake.audit import snapshot
from eventlake.audit.compare import compare
from eventlake.audit.rows import RAW, ROWS, Spill, bucket_bits
from eventlake.audit.rule import Raw, Row, judge
from eventlake.audit.scope import FIRST, LAST, Scope
from eventlake.audit.snapshot import audited_files
from eventlake.rules import paths
from eventlake.rules.errors import SettingsError, StateError, UsageError
from eventlake.runs.plan import Archive, RawFiles
from eventlake.runs.unit import Window
from eventlake.state.ledger import LedgerEntry
from eventlake.storage import StoredFile
from tests.support.lakes.archive import page, track
from tests.support.lakes.runs import Audited, Runs, utc

A, B = (f"segment-logs/S1/{folder}" for folder in ("1790812800000/a.gz", "1790899200000/b.gz"))


def test_a_file_that_is_not_loaded_yet_waits_and_is_not_missing(
    runs: Runs, audited: Audited
) -> None:
    runs.archive.day("2026-10-02").file("c", track("Order", "m9", "2026-10-02T07:00"), "{")
    found = audited()
    assert found.agrees
    assert found.raw.waiting == ("segment-logs/S1/1790899200000/c.gz",)
    assert (found.total.waiting, found.total.rejected) == (1, 3)


def test_what_a_replay_brought_before_the_sync_is_no_stranger(runs: Runs, audited: Audited) -> None:
    runs.archive.day("2026-10-02").file("c", track("Order", "m9", "2026-10-02T07:00"))
    runs.replay("2026-10-02", "2026-10-03")
    found = audited()
    assert found.agrees
    assert (found.total.waiting, found.total.loaded) == (0, 6)
    assert found.raw.waiting == ("segment-logs/S1/1790899200000/c.gz",)


def test_the_rest_of_a_file_that_was_broken_waits(runs: Runs, audited: Audited) -> None:
    lines = [track("Order", f"n{n}", "2026-10-02T09:00", note="x" * n * 20) for n in range(20)]
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
    assert whole.raw.waiting == ("segment-logs/S1/1790899200000/c.gz",)
    (partition,) = (p for p in runs.files("track_order") if p.endswith("2026-10-02/hr=09"))
    runs.storage.delete_folder(partition)
    assert audited().total.missing == loaded


def test_a_file_that_changed_after_it_was_loaded_is_told(runs: Runs, audited: Audited) -> None:
    runs.archive.day("2026-10-02").file("b", track("Order", "m5", "2026-10-02T07:00"))
    found = audited()
    assert found.raw.changed == (B,)
    (one,) = found.partitions
    assert sorted(one.examples) == [("missing", "m5"), ("unexpected", "m4")]
    runs.replay("2026-10-02", "2026-10-03")
    assert audited().agrees


@pytest.mark.parametrize("folder_too", [False, True])
def test_rows_whose_file_is_gone_cannot_be_checked(
    runs: Runs, audited: Audited, folder_too: bool
) -> None:
    (runs.root / B).unlink()
    if folder_too:
        (runs.root / B).parent.rmdir()
    found = audited()
    assert found.agrees
    assert [entry.path for entry in found.raw.gone] == [B]
    assert (found.total.unchecked, found.total.unexpected) == (1, 0)


def test_only_the_hours_of_a_file_that_is_gone_are_excused(runs: Runs, audited: Audited) -> None:
    runs.archive.day("2026-10-01").file("a", track("Order", "m1", "2026-10-01T07:00"))
    (runs.root / B).unlink()
    found = audited()
    assert {one.partition[:14] for one in found.partitions} == {"day=2026-10-01"}
    assert found.total.unchecked == 1


def test_what_is_there_twice_is_told_even_if_its_file_is_gone(runs: Runs, audited: Audited) -> None:
    (runs.root / B).unlink()
    (partition,) = (p for p in runs.files("track_order") if p.endswith("2026-10-02/hr=07"))
    runs.storage.copy(f"{partition}/R1-1-0.parquet", f"{partition}/copy.parquet")
    found = audited()
    assert [(p.doubled, p.examples) for p in found.partitions] == [(1, (("doubled", "m4"),))]
    assert found.total.unchecked == 1


def test_folders_before_the_start_are_not_asked_for(runs: Runs, audited: Audited) -> None:
    runs.set(start="2026-10-01")
    runs.archive.day("2026-09-30").file("z", track("Order", "m0", "2026-09-30T07:00"))
    found = audited()
    assert found.agrees
    assert (len(found.raw.early), len(found.raw.waiting), found.total.waiting) == (1, 0, 1)
    runs.replay("2026-09-30", "2026-10-01")
    found = audited()
    assert found.agrees
    assert found.total.waiting == 0


def test_the_current_settings_are_asked(runs: Runs, audited: Audited) -> None:
    runs.set(load_without_message_id=True)
    assert [(p.table, p.missing) for p in audited().partitions] == [("identify", 1)]
    runs.replay("2026-10-01", "2026-10-02")
    assert audited().agrees
    runs.set(skip_events=["Order"])
    found = audited()
    assert {(p.table, p.expected) for p in found.partitions if p.table != "identify"} == {
        ("track_order", 0)
    }
    assert found.total.skipped == 6


@pytest.mark.parametrize("limits", [{"columns": 17}, {"tables": 2}, {"catalog_tables": 2}])
def test_what_a_limit_keeps_out_is_rejected_not_missing(
    runs: Runs, audited: Audited, limits: dict[str, int]
) -> None:
    runs.set(limits=limits)
    runs.archive.day("2026-10-03").file(
        "c",
        track("Order", "m6", "2026-10-03T07:00", a=1),
        track("Order", "m7", "2026-10-03T07:00", b=1),
        page("p1", "2026-10-03T07:00", b=1, c=2),
    )
    report = runs.sync()
    found = audited()
    assert found.agrees
    assert found.total.rejected == report.rejected + 2
    assert found.total.loaded == report.row_count + 5


def test_a_new_place_is_empty(runs: Runs, audited: Audited) -> None:
    runs.set(database="other")
    assert audited().total.missing == 5
    runs.replay("2026-10-01", "2026-10-03")
    assert audited().agrees


def test_a_changed_layout_is_refused(runs: Runs, audited: Audited) -> None:
    runs.set(date_partition="day")
    with pytest.raises(SettingsError, match="date_partition"):
        audited()


def test_an_archive_that_is_not_there_is_refused(runs: Runs, audited: Audited) -> None:
    runs.set(raw="nowhere")
    with pytest.raises(UsageError, match="The raw archive of source 'shop' is not there"):
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


def test_a_commit_that_nobody_applies_is_told(
    runs: Runs, audited: Audited, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "_PAUSE_SECONDS", 0.0)
    runs.archive.day("2026-10-02").file("c", track("Order", "m9", "2026-10-02T07:00"))
    before = runs.storage.read(paths.state_file("S1")) or b""
    runs.sync()
    runs.storage.write(paths.state_file("S1"), before)  # as if the run had died before this
    with pytest.raises(StateError, match=r"Manifest 3 .* `datalake sync --source shop` completes"):
        audited()
    runs.sync()
    assert audited().agrees


WINDOW = 7
# Two ids that agree in one half of their hash, in the other, and in none.
IDS = st.sampled_from([(1, 1), (1, 2), (2, 1), (2**64 - 1, 2**63), (0, 0)])
EVENTS = st.lists(
    st.tuples(IDS, st.integers(-9, 9), st.integers(0, 2), st.integers(0, 1), st.integers(0, 2)),
    max_size=12,
)
FOUND = st.lists(st.tuples(IDS, st.integers(-9, 9), st.integers(0, 2), st.booleans()), max_size=12)


@given(EVENTS, FOUND)
def test_each_id_is_judged_by_itself(
    events: list[tuple[tuple[int, int], int, int, int, int]],
    found: list[tuple[tuple[int, int], int, int, bool]],
) -> None:
    raw = np.array(
        [
            (*id, at, table, file, n, demand)
            for n, (id, at, table, file, demand) in enumerate(events)
        ],
        dtype=RAW,
    )
    rows = np.array(
        [(*id, at, table, 0, n, judged) for n, (id, at, table, judged) in enumerate(found)],
        dtype=ROWS,
    )
    raw_verdicts, row_verdicts = compare(raw, rows, WINDOW)
    for id in {*(event[0] for event in events), *(row[0] for row in found)}:
        mine = [n for n, event in enumerate(events) if event[0] == id]
        mine.sort(key=lambda n: (events[n][1], events[n][3], n))
        here = sorted((n for n, row in enumerate(found) if row[0] == id), key=lambda n: found[n][1])
        expected = judge(
            [Raw(events[n][1], events[n][2], events[n][4]) for n in mine],
            [Row(*found[n][1:]) for n in here],
            WINDOW,
        )
        assert (raw_verdicts[mine].tolist(), row_verdicts[here].tolist()) == expected


@pytest.mark.parametrize(
    ("rows", "bits"), [(0, 0), (1, 0), (2_000_000, 0), (2_000_001, 1), (9_000_000, 3), (10**12, 12)]
)
def test_buckets_hold_some_million_rows_each(rows: int, bits: int) -> None:
    assert bucket_bits(rows) == bits


@pytest.mark.parametrize("bits", [0, 1, 4])
@pytest.mark.parametrize("pending", [1, 7, 1000])
def test_what_is_spilled_is_read_back_id_by_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bits: int, pending: int
) -> None:
    monkeypatch.setattr("eventlake.audit.rows.PENDING", pending)
    words = np.random.default_rng(7).integers(0, 2**64, 50, dtype=np.uint64)
    rows = np.zeros(50, dtype=ROWS)
    rows["hi"], rows["row"] = words, np.arange(50)
    spilled = Spill(tmp_path, "rows", ROWS, bits)
    for start in range(0, 50, 10):
        spilled.add(rows[start : start + 10])
    back = [spilled.read(bucket) for bucket in range(2**bits)]
    assert sorted(np.concatenate(back).tolist()) == sorted(rows.tolist())
    for bucket, part in enumerate(back):
        assert all(int(hi) >> (64 - bits) == bucket for hi in part["hi"])
