"""The audit of a whole lake, its rule for duplicates, and its results on random lakes."""

from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings

from eventlake.audit.audit import Audit, audit
from eventlake.audit.rule import Demand, Raw, RawVerdict, Row, RowVerdict, judge
from eventlake.audit.snapshot import EVERYTHING, Scope, micros
from eventlake.lake import Lake
from eventlake.rules.partitions import DAY_US
from eventlake.runs.unit import Window
from tests.support.lakes.archive import identify, order
from tests.support.lakes.random_archives import Replay, Story, Sync, stories
from tests.support.lakes.runs import Audited, Runs, utc
from tests.support.oracles.reference import ReferenceLake
from tests.support.oracles.stories import ReferenceStory, play

ORDER = "segment-data/data/S1/segment_type=track_order"
FIRST = f"{ORDER}/day=2026-10-01/hr=07/R1-0-0.parquet"  # m1 and m2


def differences(found: Audit) -> list[tuple[str, str, int, int, list[str]]]:
    """Table, partition, rows that should be and are, and the ids."""
    return [
        (one.table, one.partition, one.expected, one.found, [f"{k} {id}" for k, id in one.examples])
        for one in found.partitions
    ]


def rewrite(path: Path, rows: pa.Table) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, path, store_schema=False)


def row(runs: Runs, **cells: object) -> pa.Table:
    """The first row of a data file with some cells changed."""
    rows = pq.read_table(runs.root / FIRST, partitioning=None)[:1]
    for name, value in cells.items():
        place = rows.schema.get_field_index(name)
        column = pa.array([value], rows.schema.field(name).type)
        rows = rows.set_column(place, name, column)
    return rows


def test_all_agrees_and_every_row_is_accounted_for(audited: Audited) -> None:
    found = audited()
    assert found.agrees
    assert [
        (t.table, t.rows_in, t.loaded, t.duplicates, t.rejected, t.skipped) for t in found.tables
    ] == [("", 1, 0, 0, 1, 0), ("identify", 2, 1, 0, 1, 0), ("track_order", 6, 4, 2, 0, 0)]
    total = found.total
    assert total.rows_in == 9
    assert (total.missing, total.unexpected, total.doubled, total.waiting) == (0, 0, 0, 0)


@pytest.mark.parametrize(
    ("start", "end", "rows_in", "loaded", "duplicates"),
    [
        ("2026-10-01", "2026-10-02", 6, 4, 1),
        ("2026-10-01T07", "2026-10-01T08", 4, 3, 0),
        ("2026-10-01T07:30", "2026-10-01T08:00", 1, 1, 0),
        ("2026-10-01T09", "2026-10-01T10", 1, 0, 1),
        ("2026-10-02", None, 2, 1, 1),
        (None, "2026-10-02", 6, 4, 1),
        ("2026-11-01", "2026-11-02", 0, 0, 0),
    ],
)
def test_a_range_is_compared_with_the_days_around_it(
    audited: Audited, start: str | None, end: str | None, rows_in: int, loaded: int, duplicates: int
) -> None:
    found = audited(start, end)
    assert found.agrees
    total = found.total
    assert (total.rows_in, total.loaded, total.duplicates) == (rows_in, loaded, duplicates)


def test_a_missing_data_file(runs: Runs, audited: Audited) -> None:
    (runs.root / FIRST).unlink()
    found = audited()
    assert differences(found) == [
        # The later copy of m1 is within the window of the one that is missing.
        ("track_order", "day=2026-10-01/hr=07", 2, 0, ["missing m1", "missing m2"])
    ]
    assert found.partitions[0].problems == ("the catalog says 2 rows, its files have 0",)
    assert (found.total.missing, found.total.duplicates) == (2, 2)


@pytest.mark.parametrize("without_ids", [False, True])
def test_a_data_file_that_cannot_be_read(runs: Runs, audited: Audited, without_ids: bool) -> None:
    (runs.root / FIRST).write_bytes(b"PAR1")
    if without_ids:
        rewrite(runs.root / FIRST, pa.table({"x": [1, 2]}))
    (one,) = audited().partitions
    assert (one.missing, one.found) == (2, 0)
    assert one.problems[0].startswith(f"{FIRST} cannot be read: ")


@pytest.mark.parametrize("batch", [2, 50_000])
def test_a_removed_row(
    runs: Runs, audited: Audited, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    monkeypatch.setattr("eventlake.audit.rows.BATCH", batch)
    assert audited().total.loaded == 5
    rewrite(runs.root / FIRST, row(runs))
    assert differences(audited()) == [("track_order", "day=2026-10-01/hr=07", 2, 1, ["missing m2"])]


def test_a_file_that_is_there_twice(runs: Runs, audited: Audited) -> None:
    copy = runs.root / FIRST.replace("R1-0-0", "copy")
    copy.write_bytes((runs.root / FIRST).read_bytes())
    (one,) = audited().partitions
    assert (one.expected, one.found, one.doubled) == (2, 4, 2)
    assert sorted(one.examples) == [("doubled", "m1"), ("doubled", "m2")]
    assert one.problems == ("the catalog says 2 rows, its files have 4",)


def test_a_copy_in_another_table_is_doubled_too(runs: Runs, audited: Audited) -> None:
    where = "segment-data/data/S1/segment_type=identify/day=2026-10-01/hr=07/more.parquet"
    runs.load("2026-10-01", identify("m1", "2026-10-01T07:15"), name="c")
    assert audited().agrees
    rewrite(runs.root / where, row(runs, received_at=1790838900000000))
    assert differences(audited()) == [("identify", "day=2026-10-01/hr=07", 1, 2, ["doubled m1"])]


@pytest.mark.parametrize("start", ["2026-10-01T08", None])
def test_a_copy_beyond_the_range_counts(runs: Runs, audited: Audited, start: str | None) -> None:
    where = runs.root / f"{ORDER}/day=2026-10-01/hr=08/more.parquet"
    runs.load("2026-10-01", order("m1", "2026-10-01T08:15"), name="c")
    rewrite(where, row(runs, received_at=1790842500000000))
    assert differences(audited(start, "2026-10-01T09")) == [
        ("track_order", "day=2026-10-01/hr=08", 1, 2, ["doubled m1"])
    ]


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        ({"message_id": "m9"}, "unexpected"),
        ({"message_id": None}, "unexpected"),
        ({"received_at": None}, "unexpected"),
        ({"received_at": 2**62}, "unexpected"),
        ({"received_at": 1790838000000001}, "doubled"),  # a microsecond later
        ({"received_at": 1790841600000000}, "doubled"),  # of the next hour
    ],
)
def test_a_row_never_sent(
    runs: Runs, audited: Audited, cells: dict[str, object], kind: str
) -> None:
    rewrite(runs.root / FIRST.replace("R1-0-0", "more"), row(runs, **cells))
    (one,) = audited().partitions
    assert (one.expected, one.found, one.unexpected + one.doubled) == (2, 3, 1)
    assert one.examples == ((kind, str(cells.get("message_id", "m1") or "")),)


def test_a_row_in_a_wrong_hour_is_missing_in_its_own(runs: Runs, audited: Audited) -> None:
    source = runs.root / FIRST
    source.rename(runs.root / FIRST.replace("hr=07", "hr=08").replace("R1-0-0", "moved"))
    assert differences(audited()) == [
        ("track_order", "day=2026-10-01/hr=07", 2, 0, ["missing m1", "missing m2"]),
        ("track_order", "day=2026-10-01/hr=08", 1, 3, ["unexpected m1", "unexpected m2"]),
    ]


def test_differences_outside_the_range_are_not_reported(runs: Runs, audited: Audited) -> None:
    (runs.root / FIRST).unlink()
    assert audited("2026-10-01T08", "2026-10-01T09").agrees
    assert not audited("2026-10-01T07", "2026-10-01T08").agrees
    # But a copy is missing whose twin outside was the only one.
    (one,) = audited("2026-10-01T09", "2026-10-01T10").partitions
    assert (one.partition, one.examples) == ("day=2026-10-01/hr=09", (("missing", "m1"),))


def test_examples_are_few_and_counts_are_exact(runs: Runs, audited: Audited) -> None:
    lines = (order(f"n{n}", "2026-10-03T07:00") for n in range(10))
    runs.load("2026-10-03", *lines, name="c")
    (runs.root / f"{ORDER}/day=2026-10-03/hr=07/R2-0-0.parquet").unlink()
    (one,) = audited().partitions
    assert (one.missing, len(one.examples)) == (10, 3)


WINDOW = 7
LOADED, DUPLICATE, REJECTED, WAITING, MISSING = RawVerdict
FINE, DOUBLED, UNEXPECTED, NOT_JUDGED = RowVerdict


def raw(received: int, table: str = "a", demand: Demand = Demand.REQUIRED) -> Raw:
    return Raw(received, table, demand)


def waits(received: int) -> Raw:
    return raw(received, demand=Demand.WAITING)


def beyond(received: int) -> Raw:
    return raw(received, demand=Demand.BEYOND)


def around(received: int) -> Row:
    return Row(received, "a", judged=False)


@pytest.mark.parametrize(
    ("events", "rows", "of_events", "of_rows"),
    [
        # All is well.
        ([], [], [], []),
        ([raw(0)], [Row(0, "a")], [LOADED], [FINE]),
        ([raw(0), raw(0)], [Row(0, "a")], [LOADED, DUPLICATE], [FINE]),
        ([raw(0), raw(5)], [Row(0, "a")], [LOADED, DUPLICATE], [FINE]),
        ([raw(0), raw(5)], [Row(5, "a")], [DUPLICATE, LOADED], [FINE]),
        ([raw(0), raw(5, table="b")], [Row(5, "b")], [DUPLICATE, LOADED], [FINE]),
        ([raw(0), raw(8)], [Row(0, "a"), Row(8, "a")], [LOADED, LOADED], [FINE, FINE]),
        (
            [raw(0), raw(6), raw(12)],
            [Row(0, "a"), Row(12, "a")],
            [LOADED, DUPLICATE, LOADED],
            [FINE, FINE],
        ),
        ([raw(0), raw(6), raw(12)], [Row(6, "a")], [DUPLICATE, LOADED, DUPLICATE], [FINE]),
        # Something is missing: of copies within the window only one.
        ([raw(0)], [], [MISSING], []),
        ([raw(0), raw(7)], [], [MISSING, DUPLICATE], []),
        ([raw(0), raw(8)], [], [MISSING, MISSING], []),
        ([raw(0), raw(8)], [Row(0, "a")], [LOADED, MISSING], [FINE]),
        ([raw(0), raw(8)], [Row(8, "a")], [MISSING, LOADED], [FINE]),
        # Something is there twice.
        ([raw(0), raw(0)], [Row(0, "a"), Row(0, "a")], [LOADED, DUPLICATE], [FINE, DOUBLED]),
        ([raw(0)], [Row(0, "a"), Row(0, "a")], [LOADED], [FINE, DOUBLED]),
        ([raw(0), raw(7)], [Row(0, "a"), Row(7, "a")], [LOADED, DUPLICATE], [FINE, DOUBLED]),
        ([raw(0), raw(3, "b")], [Row(0, "a"), Row(3, "b")], [LOADED, DUPLICATE], [FINE, DOUBLED]),
        # Something is there that nobody sent.
        ([], [Row(0, "a")], [], [UNEXPECTED]),
        ([raw(0)], [Row(1, "a")], [MISSING], [UNEXPECTED]),
        ([raw(0)], [Row(0, "b")], [MISSING], [UNEXPECTED]),
        ([raw(8)], [Row(0, "a"), Row(8, "a")], [LOADED], [UNEXPECTED, FINE]),
        ([raw(0)], [Row(0, "b"), Row(8, "a")], [MISSING], [UNEXPECTED, UNEXPECTED]),
        # If it is there for the second time, it is doubled, and never the one that was sent.
        ([raw(5)], [Row(0, "a"), Row(5, "a")], [LOADED], [DOUBLED, FINE]),
        ([raw(5)], [Row(5, "a"), Row(5, "b")], [LOADED], [FINE, DOUBLED]),
        ([], [Row(0, "a"), Row(7, "a"), Row(15, "a")], [], [UNEXPECTED, DOUBLED, UNEXPECTED]),
        ([], [around(0), Row(7, "a")], [], [NOT_JUDGED, DOUBLED]),
        # Rows around the range count for comparison, and are not judged.
        ([], [around(0)], [], [NOT_JUDGED]),
        ([raw(5)], [around(0)], [DUPLICATE], [NOT_JUDGED]),
        ([raw(8)], [around(0)], [MISSING], [NOT_JUDGED]),
        ([raw(5)], [around(0), Row(5, "a")], [DUPLICATE], [NOT_JUDGED, DOUBLED]),
        ([raw(5)], [Row(5, "a"), around(9)], [DUPLICATE], [DOUBLED, NOT_JUDGED]),
        # What waits need not be there, and may be.
        ([waits(0)], [], [WAITING], []),
        ([waits(0)], [Row(0, "a")], [LOADED], [FINE]),
        ([raw(0), waits(0)], [Row(0, "a")], [LOADED, WAITING], [FINE]),
        ([waits(0), raw(0)], [Row(0, "a")], [WAITING, LOADED], [FINE]),
        ([waits(0), raw(5)], [], [WAITING, MISSING], []),
        ([waits(0), raw(5)], [Row(0, "a")], [LOADED, DUPLICATE], [FINE]),
        # What a limit keeps out is rejected, unless it is there.
        ([beyond(0)], [], [REJECTED], []),
        ([beyond(0)], [Row(0, "a")], [LOADED], [FINE]),
        ([beyond(0), raw(5)], [Row(5, "a")], [REJECTED, LOADED], [FINE]),
    ],
)
def test_verdicts_on_one_id(
    events: list[Raw], rows: list[Row], of_events: list[RawVerdict], of_rows: list[RowVerdict]
) -> None:
    assert judge(events, rows, WINDOW) == (of_events, of_rows)


DAYS = Window(utc("2026-10-01"), utc("2026-10-09"))


def times_by_id(lake: ReferenceLake) -> dict[str, list[int]]:
    """When the rows of each message id were received, in order."""
    found = defaultdict(list)
    for table in lake.tables.values():
        for row in table.rows:
            found[row.id].append(row.received)
    return {id: sorted(times) for id, times in found.items()}


def missing(reference: ReferenceStory, range: Window) -> int:
    """Events of the range that no row of their id is near to; of several near each other, one."""
    archive = ReferenceLake(reference.runs.source.model_copy(update={"dedup_days": 0}))
    archive.load(list(reference.archive.values()))
    loaded = times_by_id(reference.lake)
    start, end = micros(range)
    window = reference.runs.source.dedup_days * DAY_US
    count = 0
    for id, times in times_by_id(archive).items():
        known = loaded.get(id, [])
        for time in times:
            if start <= time < end and all(abs(time - other) > window for other in known):
                known = [*known, time]
                count += 1
    return count


def page(received: str) -> dict[str, str]:
    return {"type": "page", "messageId": "m1", "receivedAt": received}


LEFT_BEHIND = Story(
    {"start": "2026-10-01"},
    [
        # The last one is a duplicate of the first, until the replay keeps an earlier one.
        Sync({("2026-10-09", "a"): [page("2026-10-08T07:00:00Z"), page("2026-10-15T07:00:00Z")]}),
        Sync({("2026-10-09", "b"): [page("2026-10-08T06:59:59.999999Z")]}),
        Replay("2026-10-01", "2026-10-09", frozenset()),
    ],
)


@settings(max_examples=30)
@given(stories())
@example(LEFT_BEHIND)
def test_syncs_and_replays_make_what_the_archive_implies(story: Story) -> None:
    with TemporaryDirectory() as folder:
        runs = Runs(Path(folder), **story.settings)
        reference = ReferenceStory(runs)
        for number, step in enumerate(story.steps):
            play(step, runs)
            if isinstance(step, Replay):
                reference.replay(step)
            else:
                reference.sync(step)
            replayed = any(isinstance(done, Replay) for done in story.steps[: number + 1])
            for range in (EVERYTHING, DAYS):
                found = audit(Lake.open(runs.settings), Scope(runs.source, range))
                # A replay may keep an earlier copy than before, and so leave one behind, later
                # than the window, of which the lake has none until its own day is replayed.
                assert found.total.missing == missing(reference, range)
                assert replayed or found.total.missing == 0
                assert found.agrees == (found.total.missing == 0)
                assert not any(partition.problems for partition in found.partitions)
                assert (found.total.unexpected, found.total.doubled) == (0, 0)
                if range is EVERYTHING:
                    assert found.total.loaded == sum(runs.state().rows.values())


def test_the_audit_finds_the_copy_that_a_replay_leaves_behind(tmp_path: Path) -> None:
    runs = Runs(tmp_path, **LEFT_BEHIND.settings)
    for step in LEFT_BEHIND.steps:
        play(step, runs)
    found = audit(Lake.open(runs.settings), Scope(runs.source))
    assert [partition.missing for partition in found.partitions] == [1]
