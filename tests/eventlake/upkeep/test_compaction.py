"""A compacted lake: the same rows in fewer files, whoever reads, writes or wishes meanwhile."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow.parquet as pq
import pytest

from eventlake.lake import Lake
from eventlake.records.find import Fate, find
from eventlake.rules import paths
from eventlake.rules.names import Naming
from eventlake.rules.partitions import DatePartition
from eventlake.upkeep import candidates, compaction
from eventlake.upkeep import rewrite as rewriting
from eventlake.upkeep.rewrite import Rewritten
from tests.support.faults.cases import COLUMN, scattered
from tests.support.lakes.archive import identify, track
from tests.support.lakes.glue_runs import GlueRuns
from tests.support.lakes.retyping import days_of_a_replay, seen, wish
from tests.support.lakes.runs import SOURCE_ID, Runs
from tests.support.oracles.invariants import check_invariants, check_sweep
from tests.support.servers.aws import AwsServer


def held(runs: Runs) -> dict[str, list[str]]:
    """All rows by table, without regard to order; columns that are null say nothing."""
    return {
        table: sorted(
            repr(sorted((k, v) for k, v in row.items() if v is not None))
            for row in runs.rows(table)
        )
        for table in runs.tables()
    }


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


def test_today_is_left_alone(runs: Runs) -> None:
    scattered(runs)
    assert runs.compact(at="2026-10-01").partitions == 0
    assert runs.compact(at="2026-10-02").partitions == 2
    assert runs.compact(at="2026-10-03").partitions == 1


def test_switched_off_it_does_nothing(tmp_path: Any) -> None:
    runs = Runs(tmp_path, compaction={"enabled": False})
    scattered(runs)
    assert runs.compact().partitions == 0


def test_no_file_passes_the_target_and_all_rows_are_there(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rewriting, "ROW_GROUP", 4)
    for name in "abcd":
        events = [track("Order", f"{name}{n}", f"2026-10-01T07:{n:02}", n=n) for n in range(10)]
        runs.archive.day("2026-10-01").file(name, *events)
        runs.sync()
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


def test_of_very_many_files_some_go_along_as_they_are(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rewriting, "MOST_FILES", 3)
    for number in range(5):
        runs.archive.day("2026-10-01").file(f"{number}", track("Order", f"m{number}", "2026-10-01"))
        runs.sync()
    rows = held(runs)
    assert (runs.compact().files_after, held(runs)) == (3, rows)
    assert (runs.compact().files_after, held(runs)) == (1, rows)
    check_sweep(runs)


def test_work_is_done_in_units_and_one_run_does_no_more_than_is_set(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_later_syncs_and_replays_go_on_from_there(runs: Runs) -> None:
    scattered(runs)
    runs.compact()
    runs.archive.day("2026-10-03").file("z", track("Order", "late", "2026-10-01T07:59", n=1))
    runs.sync()
    [first, _] = runs.partitions("track_order").values()
    assert ("/_v/" in first.location, first.files) == (True, 2)
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
    runs.archive.day("2026-10-03").file("z", track("Order", "late", "2026-10-01T07:59", n=1))
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


def test_what_was_written_before_a_lost_race_is_not_written_again(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_a_replay_that_comes_first_wins(runs: Runs) -> None:
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
    wish(runs, COLUMN, "string")
    days = days_of_a_replay(runs, "2026-10-01", "2026-10-03")
    next(days)
    days.close()
    for name in "xyz":
        runs.archive.day("2026-10-03").file(name, track("Order", name, "2026-10-01T07:59", n=7))
        runs.sync()
    shadows = runs.state().shadows["shop.track_order"]
    assert runs.compact().partitions > 0
    kept = runs.state().shadows["shop.track_order"]
    assert {k: s.location for k, s in kept.items()} == {k: s.location for k, s in shadows.items()}
    if again:
        runs.archive.day("2026-10-03").file("w", track("Order", "w", "2026-10-01T07:59", n=8))
        runs.sync()
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
    assert (occurrence.record["raw_line"], occurrence.now) == (1, Fate.REPLACED)
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
