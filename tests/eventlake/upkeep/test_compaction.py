"""Compaction: which files are joined, how, and with other runs at the same time."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlake.catalog.base import CatalogPartition
from eventlake.lake import Lake
from eventlake.records.find import Outcome, find
from eventlake.rules import paths
from eventlake.rules.names import Naming
from eventlake.rules.partitions import DatePartition
from eventlake.rules.types import TableSchema
from eventlake.settings.models import Compaction
from eventlake.upkeep import candidates, compaction, rewrite
from eventlake.upkeep import rewrite as rewriting
from eventlake.upkeep.candidates import Candidate, file_count, units, within
from eventlake.upkeep.candidates import candidates as find_candidates
from eventlake.upkeep.rewrite import Rewritten, in_groups, merged
from tests.support.faults.cases import COLUMN, scattered
from tests.support.faults.machines import at_once
from tests.support.lakes.archive import identify, order
from tests.support.lakes.glue_runs import GlueRuns
from tests.support.lakes.retyping import days_of_a_replay, request_type, seen
from tests.support.lakes.runs import SOURCE_ID, Runs
from tests.support.lakes.watching import NOTHING, Look, by_locations, by_sql, watched
from tests.support.oracles.invariants import check_invariants, check_sweep
from tests.support.servers.aws import AwsServer


def held(runs: Runs) -> dict[str, list[str]]:
    """All rows by table, without regard to order; columns that are null say nothing."""

    def text(row: dict[str, Any]) -> str:
        return repr(sorted((key, value) for key, value in row.items() if value is not None))

    return {table: sorted(map(text, runs.rows(table))) for table in runs.tables()}


def file_counts(runs: Runs) -> dict[str, list[int]]:
    return {t: [p.files for p in runs.partitions(t).values()] for t in runs.tables()}


def test_three_files_become_one_with_the_same_rows(runs: Runs) -> None:
    scattered(runs)
    before = held(runs)
    assert file_counts(runs) == {"identify": [3], "track_order": [3, 3]}
    done = runs.compact()
    assert (done.partitions, done.rows, done.files_before, done.files_after) == (3, 9, 9, 3)
    assert done.bytes_after < done.bytes_before
    assert held(runs) == before
    assert file_counts(runs) == {"identify": [1], "track_order": [1, 1]}
    check_invariants(runs)
    assert runs.compact().partitions == 0
    check_sweep(runs)
    assert held(runs) == before


def test_files_are_written_as_the_loader_writes_them(runs: Runs) -> None:
    """In the order of time, with all columns of today, in the same encoding."""
    scattered(runs)
    [first, _] = runs.partitions("track_order").values()
    [loaded, *_] = runs.storage.files(first.location)
    runs.compact()
    [first, _] = runs.partitions("track_order").values()
    [file] = runs.storage.files(first.location)
    with runs.storage.open_input(file.path) as stream:
        parquet = pq.ParquetFile(stream)
        rows = parquet.read()
        footer = parquet.metadata
    assert rows["message_id"].to_pylist() == ["m2", "m1", "m0"]  # as they were received
    assert rows.column_names == [name for name, _, _ in runs.columns("track_order")]
    assert rows["properties_a"].to_pylist() == [None, None, 0]
    assert footer.metadata is None  # nothing of Arrow's own
    assert loaded.name != file.name


@pytest.mark.parametrize("layout", DatePartition)
@pytest.mark.parametrize("naming", Naming)
def test_in_every_layout_and_naming(tmp_path: Any, layout: DatePartition, naming: Naming) -> None:
    runs = Runs(tmp_path, date_partition=layout, naming=naming)
    scattered(runs)
    before = held(runs)
    assert runs.compact().files_after == len([p for t in runs.tables() for p in runs.partitions(t)])
    assert held(runs) == before


def test_today_is_left_alone_and_it_can_be_disabled(runs: Runs) -> None:
    scattered(runs)
    runs.set(compaction={"enabled": False})
    assert runs.compact().partitions == 0
    runs.set()
    assert runs.compact(at="2026-10-01").partitions == 0
    assert runs.compact(at="2026-10-02").partitions == 2
    assert runs.compact(at="2026-10-03").partitions == 1


def test_files_stay_below_the_target(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewriting, "ROW_GROUP", 4)
    for name in "abcd":
        events = [order(f"{name}{n}", f"2026-10-01T07:{n:02}", n=n) for n in range(10)]
        runs.load("2026-10-01", *events, name=name)
    [before] = runs.partitions("track_order").values()
    monkeypatch.setattr(candidates, "TARGET_BYTES", -(-before.bytes // 3))
    rows = held(runs)
    assert runs.compact().files_after == 3
    [after] = runs.partitions("track_order").values()
    counts = []
    for file in runs.storage.files(after.location):
        with runs.storage.open_input(file.path) as stream:
            counts.append(pq.read_metadata(stream).num_rows)
    assert counts == [16, 16, 8]
    assert held(runs) == rows


def test_some_of_many_files_go_along(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewriting, "MOST_FILES", 3)
    for number in range(5):
        runs.load("2026-10-01", order(f"m{number}", "2026-10-01"), name=f"{number}")
    rows = held(runs)
    assert (runs.compact().files_after, held(runs)) == (3, rows)
    assert (runs.compact().files_after, held(runs)) == (1, rows)
    check_sweep(runs)


def test_a_run_has_a_limit_of_units(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "UNIT_PARTITIONS", 1)
    scattered(runs)
    before = runs.state().manifest
    rows = held(runs)
    monkeypatch.setattr(compaction, "_MB", 0.000_001)
    assert runs.compact().partitions == 1
    monkeypatch.setattr(compaction, "_MB", 1_000_000)
    assert runs.compact().partitions == 2
    assert runs.state().manifest == before + 3
    assert held(runs) == rows


def test_later_syncs_and_replays_continue_from_there(runs: Runs) -> None:
    scattered(runs)
    runs.compact()
    runs.load("2026-10-03", order("late", "2026-10-01T07:59", n=1), name="z")
    [first, _] = runs.partitions("track_order").values()
    assert ("/versions/" in first.location, first.files) == (True, 2)
    rows = held(runs)
    runs.replay("2026-10-01", "2026-10-03")
    assert held(runs) == rows
    check_invariants(runs)
    check_sweep(runs)


@contextmanager
def meanwhile(runs: Runs, do: Any) -> Iterator[None]:
    """Something happens after the first partition is written, as if the lease had expired."""
    real, done = rewriting.rewrite, False

    def rewrite(*args: Any) -> Rewritten:
        nonlocal done
        written = real(*args)
        if not done:
            done = True
            runs.storage.delete(paths.lease(SOURCE_ID))
            do()
        return written

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compaction, "rewrite", rewrite)
        patch.setattr(compaction, "THREADS", 1)
        yield


def test_a_file_that_a_sync_adds_meanwhile_is_not_lost(runs: Runs) -> None:
    scattered(runs)
    runs.archive.day("2026-10-03").file("z", order("late", "2026-10-01T07:59", n=1))
    with meanwhile(runs, runs.sync):
        done = runs.compact()
    assert any("Another run committed manifest" in line for line in runs.logged)
    # The partition that grew is left to another run; the two others are done.
    assert done.partitions == 2
    assert file_counts(runs) == {"identify": [1], "track_order": [4, 1]}
    assert "late" in runs.ids("track_order")
    rows = held(runs)
    assert runs.compact().partitions == 1
    assert held(runs) == rows
    check_invariants(runs)
    check_sweep(runs)
    assert held(runs) == rows


def test_a_lost_race_keeps_its_files(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    scattered(runs)
    runs.archive.day("2026-10-03").file("z", identify("new", "2026-10-03"))
    written: list[str] = []
    real = rewriting._write

    def count(*args: Any) -> int:
        written.append(args[1])
        return real(*args)

    monkeypatch.setattr(rewriting, "_write", count)
    with meanwhile(runs, runs.sync):
        assert runs.compact().partitions == 3
    assert len(written) == len(set(written)) == 3


def test_the_first_replay_wins(runs: Runs) -> None:
    scattered(runs)
    rows = held(runs)
    with meanwhile(runs, lambda: runs.replay("2026-10-01", "2026-10-03")):
        assert runs.compact().partitions == 0
    assert held(runs) == rows
    check_invariants(runs)
    check_sweep(runs)


@pytest.mark.parametrize("again", [False, True], ids=["at once", "with another sync"])
def test_shadows_are_kept_in_step(runs: Runs, again: bool) -> None:
    """The replay that switches the types goes on after a compaction, and need do no day twice."""
    scattered(runs)
    request_type(runs, COLUMN, "string")
    days = days_of_a_replay(runs, "2026-10-01", "2026-10-03")
    next(days)
    days.close()
    for name in "xyz":
        runs.load("2026-10-03", order(name, "2026-10-01T07:59", n=7), name=name)
    shadows = runs.state().shadows["shop.track_order"]
    assert runs.compact().partitions > 0
    kept = runs.state().shadows["shop.track_order"]
    assert {k: s.location for k, s in kept.items()} == {k: s.location for k, s in shadows.items()}
    if again:
        runs.load("2026-10-03", order("w", "2026-10-01T07:59", n=8), name="w")
    runs.logged.clear()
    runs.replay("2026-10-01", "2026-10-03")
    assert any("1 of 2 days are in the lake" in line for line in runs.logged)
    kind, values = seen(runs, COLUMN)
    assert kind == "string"
    assert (values["n2"], values["x"], values["m0"]) == ("2", "7", None)
    check_invariants(runs)
    check_sweep(runs)


def test_a_partition_that_holds_something_else_is_left_alone(runs: Runs) -> None:
    scattered(runs)
    [own] = runs.partitions("identify").values()
    runs.storage.write(f"{own.location}/somebodys.parquet", b"not ours")
    assert runs.compact().partitions == 2
    [warning] = [line for line in runs.warnings if "is left as it is" in line]
    assert "holds 4 files" in warning and "replay its day" in warning
    assert len(runs.storage.files(own.location)) == 4


def test_what_is_not_the_same_is_not_published(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    scattered(runs)
    rows, manifest = held(runs), runs.state().manifest
    real = rewriting.in_groups
    monkeypatch.setattr(
        rewriting, "in_groups", lambda tables, size: real((t[:-1] for t in tables), size)
    )
    assert runs.compact().partitions == 0
    [warning, *_] = runs.warnings
    assert "wrote something else than it read (3 rows, then 0; same ids: False" in warning
    assert (held(runs), runs.state().manifest) == (rows, manifest)
    check_invariants(runs)
    check_sweep(runs)


def test_an_event_is_found_in_the_file_it_is_in_now(runs: Runs) -> None:
    scattered(runs)
    runs.compact()
    found = find(Lake(runs.settings, runs.storage, runs.catalog), runs.source, "m1")
    [occurrence], [row] = found.occurrences, found.rows
    assert (occurrence.record["raw_line"], occurrence.now) == (1, Outcome.REPLACED)
    assert occurrence.now_in == row.data_file
    assert runs.storage.exists(row.data_file)


def test_with_glue_and_s3(tmp_path: Any, aws: AwsServer) -> None:
    runs = GlueRuns(tmp_path, aws)
    scattered(runs)
    before = held(runs)
    assert runs.compact().files_after == 3
    assert held(runs) == before
    check_sweep(runs)
    assert held(runs) == before


MB = 1_000_000
ORDERS = TableSchema("track_order", "shop", "track_order", "Order", ())
RULE = Compaction()


def partition(day: str, files: int, size: int) -> tuple[str, Candidate]:
    held = CatalogPartition((day, "07"), f"x/{day}", 1, rows=files, bytes=size, files=files)
    return day, Candidate(ORDERS, held)


def chosen(*partitions: tuple[str, Candidate], rule: Compaction = RULE) -> list[str]:
    found = find_candidates(partitions, rule, last_day="2026-10-02")
    return [one.partition.values[0] for one in found]


@pytest.mark.parametrize(
    ("files", "size", "is_chosen"),
    [
        (3, 3 * MB, True),
        (2, 2 * MB, False),  # not worth it
        (1, 1 * MB, False),
        (3, 3 * 64 * MB, False),  # not small
        (3, 3 * 64 * MB - 1, True),
        (5, 5 * 60 * MB, True),  # two files of 150 MB
        (3, 200, True),
    ],
)
def test_many_small_files_are_chosen(files: int, size: int, is_chosen: bool) -> None:
    assert bool(chosen(partition("2026-10-01", files, size))) is is_chosen


def test_the_worst_come_first_and_then_the_newest() -> None:
    few, newer = partition("2026-10-01", 3, 100), partition("2026-10-02", 3, 100)
    many, today = partition("2026-09-01", 9, 100), partition("2026-10-03", 9, 100)
    assert chosen(few, newer, many, today) == ["2026-09-01", "2026-10-02", "2026-10-01"]
    rule = Compaction(min_files=2, below_mb=1_000)  # two files of 500 MB could not be fewer
    assert chosen(partition("2026-10-01", 2, 500 * MB), rule=rule) == []
    assert chosen(partition("2026-10-01", 3, 500 * MB), rule=rule) == ["2026-10-01"]


@pytest.mark.parametrize(
    ("size", "files"), [(0, 1), (1, 1), (256 << 20, 1), ((256 << 20) + 1, 2), (1 << 30, 4)]
)
def test_no_file_passes_256_mb(size: int, files: int) -> None:
    assert file_count(size) == files


def test_runs_and_units_have_a_limit_of_bytes() -> None:
    three = [partition("2026-10-01", 3, size)[1] for size in (50, 30, 30)]
    assert [len(list(within(three, most))) for most in (110, 109, 1)] == [3, 2, 1]
    large = [partition("2026-10-01", 3, 200 << 20)[1] for _ in range(3)]
    assert [len(unit) for unit in units(large)] == [1, 1, 1]
    small = [partition("2026-10-01", 3, 1)[1] for _ in range(450)]
    assert [len(unit) for unit in units(small)] == [200, 200, 50]
    assert list(units([])) == []


DAYS = ("2026-10-01", "2026-10-02")
SYNCS = 12


def put(runs: Runs, number: int) -> None:
    for day in DAYS:
        lines = [order(f"{day} {number} {n}", f"{day}T07:{n:02}", v=n) for n in range(5)]
        aside = runs.archive.day(day).file(f".{number:02}", *lines)
        aside.rename(aside.with_name(f"{number:02}.gz"))


def syncs(runs: Runs, chance: random.Random) -> None:
    for number in range(4, SYNCS):
        put(runs, number)
        runs.sync()


def compactions(runs: Runs, chance: random.Random) -> None:
    for _ in range(8):
        runs.compact()


@pytest.mark.parametrize("leases", [True, False], ids=["with leases", "without"])
@pytest.mark.parametrize("look", [by_sql, by_locations])
def test_readers_see_every_sync_and_no_compaction(tmp_path: Path, look: Look, leases: bool) -> None:
    runs = Runs(tmp_path)
    for number in range(4):
        put(runs, number)
        runs.sync()
    with watched(tmp_path, "track_order", look) as watcher:
        at_once(tmp_path, [syncs, compactions], seed=1, leases=leases)
        runs.set(compaction={"min_files": 2})  # a sync may have come after the last one
        runs.compact()
    for day in DAYS:
        seen = watcher.seen[day, "07"]
        # One sync's rows after the other's, each whole, and none of them ever gone again.
        numbers = [{id.split()[1] for id, _ in state} for state in seen]
        assert all(earlier < later for earlier, later in pairwise(numbers))
        assert all(len(state) == 5 * len(n) for state, n in zip(seen, numbers, strict=True))
        assert len(seen[-1]) == 5 * SYNCS and seen[0] == NOTHING
    assert [p.files for p in runs.partitions("track_order").values()] == [1, 1]
    check_invariants(runs)
    check_sweep(runs)


SCHEMA = pa.schema(
    [("received_at", pa.timestamp("us", "UTC")), ("id", pa.string()), ("later", pa.int64())]
)


def file_of(times: list[int], number: int) -> pq.ParquetFile:
    """An older file, which lacks a column."""
    ids = [f"{number}-{row}" for row in range(len(times))]
    columns = {"received_at": pa.array(sorted(times), pa.timestamp("us", "UTC")), "id": ids}
    data = BytesIO()
    pq.write_table(pa.table(columns), data)
    return pq.ParquetFile(BytesIO(data.getvalue()))


@given(st.lists(st.lists(st.integers(-5, 20), max_size=12), max_size=5), st.integers(1, 4))
def test_all_rows_come_once_in_order_and_files_in_theirs(files: list[list[int]], size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rewrite, "_LEAST", size)
        patch.setattr(rewrite, "ROW_GROUP", 1)
        opened = [file_of(times, number) for number, times in enumerate(files)]
        parts = list(merged(opened, SCHEMA, "received_at"))
    found = pa.concat_tables([SCHEMA.empty_table(), *parts])
    times = found["received_at"].cast(pa.int64()).to_pylist()
    assert times == sorted(time for file in files for time in file)
    ids = found["id"].to_pylist()
    assert sorted(ids) == sorted(f"{n}-{r}" for n, f in enumerate(files) for r in range(len(f)))
    for number in range(len(files)):  # the order within a file is kept
        mine = [id for id in ids if id.startswith(f"{number}-")]
        assert mine == [f"{number}-{row}" for row in range(len(mine))]
    assert found["later"].null_count == len(found)


def test_memory_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewrite, "_LEAST", 10)
    monkeypatch.setattr(rewrite, "ROW_GROUP", 20)
    files = [file_of(list(range(number, 1000, 2)), number) for number in (0, 1)]
    parts = list(merged(files, SCHEMA, "received_at"))
    assert sum(map(len, parts)) == 1000
    assert max(map(len, parts)) <= 20


def test_a_file_is_read_from_when_its_time_has_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """Syncs come one after the other: of their files few overlap."""
    monkeypatch.setattr(rewrite, "ROW_GROUP", 1)
    begun: list[int] = []
    real = rewrite._Rows

    def rows(*args: Any) -> Any:
        begun.append(len(begun))
        return real(*args)

    monkeypatch.setattr(rewrite, "_Rows", rows)
    files = [file_of([10 * number, 10 * number + 12], number) for number in range(20)]
    parts = merged(files, SCHEMA, "received_at")
    assert len(next(parts)) == 3
    assert len(begun) == 2
    assert sum(map(len, parts)) == 37
    assert len(begun) == 20


def test_short_of_memory_files_wait_and_no_row_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewrite, "MOST_BYTES", 1)
    files = [file_of([1, 5, 9], number) for number in range(3)]
    found = pa.concat_tables(merged(files, SCHEMA, "received_at"))
    assert found["id"].to_pylist() == [f"{file}-{row}" for file in range(3) for row in range(3)]


@pytest.mark.parametrize(
    ("lengths", "groups"),
    [
        ([5, 5, 5], [7, 7, 1]),
        ([7], [7]),
        ([14], [7, 7]),
        ([6, 1], [7]),
        ([6, 8, 7], [7, 7, 7]),
        ([6], [6]),
        ([0], []),
        ([], []),
    ],
)
def test_rows_are_cut_into_groups_of_one_size(lengths: list[int], groups: list[int]) -> None:
    rows = pa.table({"n": range(sum(lengths))})
    tables = [rows[sum(lengths[:n]) :][:length] for n, length in enumerate(lengths)]
    found = list(in_groups(iter(tables), 7))
    assert [len(group) for group in found] == groups
    assert pa.concat_tables([rows[:0], *found]) == rows
