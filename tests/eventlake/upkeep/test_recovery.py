"""A lost state is made again from the data, and is equal to it in all that matters."""

import random
from typing import Any

import pytest

from eventlake.checks.published import TableChecks
from eventlake.rules import paths
from eventlake.rules.clock import now
from eventlake.upkeep.recovery import Rebuilt, rebuild
from tests.support.lakes.archive import Line, identify, order, track
from tests.support.lakes.glue_runs import story
from tests.support.lakes.retyping import lake_of, request_type
from tests.support.lakes.runs import SOURCE_ID, Runs
from tests.support.oracles.invariants import check_invariants, check_sweep
from tests.support.repo import injected

STATE = "segment-data/_state"
DAYS = ("2026-10-01", "2026-10-02", "2026-10-03")


def recover(runs: Runs) -> Rebuilt:
    def nobody_is_at_work(lease: object) -> None:
        raise AssertionError(f"waits for {lease}")

    return rebuild(lake_of(runs), runs.source, nobody_is_at_work)


def all_that_matters(runs: Runs) -> dict[str, Any]:
    state = runs.state()
    return {
        "rows": {table: sorted(map(repr, runs.rows(table))) for table in runs.tables()},
        "columns": {t: [(name, kind) for name, kind, _ in runs.columns(t)] for t in runs.tables()},
        "places": {
            (table, values): (partition.location, partition.files, {*partition.held})
            for table in runs.tables()
            for values, partition in runs.partitions(table).items()
        },
        "counted": state.rows,
        "index": {
            day: sorted(entry[:3] for entry in entries) for day, entries in runs.index().items()
        },
        "layouts": state.layouts,
    }


def check_recovered(runs: Runs, wanted: dict[str, Any]) -> None:
    """The same, also after a sync that reads everything again, and a replay."""
    assert all_that_matters(runs) == wanted
    failed = [r for r in TableChecks(lake_of(runs), runs.source, now()).run() if not r.passed]
    assert [str(result) for result in failed if result.check != "schema_change"] == []
    assert runs.sync().row_count == 0
    assert all_that_matters(runs)["rows"] == wanted["rows"]
    check_invariants(runs)
    runs.replay("2026-10-01", "2026-10-04")
    now_held = {table: len(runs.ids(table)) for table in runs.tables()}
    assert now_held == {table: len(rows) for table, rows in wanted["rows"].items()}
    check_invariants(runs)
    check_sweep(runs)


def random_life(runs: Runs, seed: int) -> None:
    """Syncs of rows and copies of earlier ones, replays, compactions; at rest in the end."""
    chance = random.Random(seed)
    known: list[Line] = []
    for step in range(chance.randint(3, 7)):
        day = chance.choice(DAYS)
        new: list[Line] = [
            track(
                chance.choice(["Order", "Refund"]),
                f"{step}-{n}",
                f"{day}T{chance.randint(7, 8):02}:{step:02}",
                **{chance.choice("abc"): chance.choice([1, "x", 1.5, True])},
            )
            for n in range(chance.randint(1, 9))
        ]
        copies = chance.sample(known, min(2, len(known)))
        known += new
        runs.load(
            day,
            *new,
            *copies,
            identify(f"i{step}", f"{day}T07:00", email="a@example.org"),
            name=f"{step}",
        )
        if chance.random() < 0.3:
            runs.compact()
        elif chance.random() < 0.3:
            runs.come_home()
        elif chance.random() < 0.3:
            runs.replay(day, f"2026-10-0{int(day[-1]) + 1}")
    check_sweep(runs)


@pytest.mark.parametrize("seed", range(8))
def test_random_lakes_come_back(runs: Runs, seed: int) -> None:
    runs.set(start=DAYS[0])  # else it is guessed from the first partition
    random_life(runs, seed)
    wanted = all_that_matters(runs)
    runs.storage.delete_folder(STATE)
    done = recover(runs)
    assert (done.rows, done.doubtful) == (sum(wanted["counted"].values()), [])
    injected["state lost"] += 1
    check_recovered(runs, wanted)


def test_a_history_with_other_types_is_rebuilt(in_each_catalog: Runs) -> None:
    runs = in_each_catalog
    story(runs)
    check_sweep(runs)
    wanted = all_that_matters(runs)
    runs.storage.delete_folder(STATE)
    recover(runs)
    found = all_that_matters(runs)
    assert [*found] == [*wanted] and found["rows"] == wanted["rows"]
    assert found["places"].keys() == wanted["places"].keys()
    assert (found["counted"], found["index"]) == (wanted["counted"], wanted["index"])
    assert runs.sync().row_count == 0
    check_invariants(runs)


def test_it_repairs_a_state_that_is_there_and_may_be_repeated(runs: Runs) -> None:
    story(runs)
    wanted = all_that_matters(runs)
    recover(runs)
    recover(runs)
    assert all_that_matters(runs) == wanted
    request_type(runs, "track_order.n", "bigint")
    check_invariants(runs)


def test_a_partition_between_two_folders_is_named(runs: Runs) -> None:
    """Before it comes home, the files do not say which of them readers have seen last."""
    runs.load("2026-10-01", order("m1", "2026-10-01T07:00"))
    runs.replay("2026-10-01", "2026-10-02")
    wanted = all_that_matters(runs)
    runs.storage.delete_folder(STATE)
    [doubtful] = recover(runs).doubtful
    assert "/versions/" in doubtful
    assert all_that_matters(runs) == wanted


def test_a_folder_of_other_types_is_left_out_and_named(runs: Runs) -> None:
    """An hour that a replay has emptied, and that is not swept yet."""
    story(runs)
    runs.come_home()
    wanted = all_that_matters(runs)["rows"]
    runs.storage.delete_folder(STATE)
    [left_out] = recover(runs).left_out
    assert left_out.endswith("/segment_type=track_order/day=2026-10-01/hr=08")
    assert all_that_matters(runs)["rows"] == wanted


@pytest.mark.parametrize("lost", [STATE, f"{STATE}/sources"])
def test_a_table_without_rows_can_be_filled_again(runs: Runs, lost: str) -> None:
    path = runs.archive.day(DAYS[0]).file("a", order("m1", f"{DAYS[0]}T07:00", n=1))
    runs.load(DAYS[0], identify("m2", f"{DAYS[0]}T07:00"), name="b")
    path.unlink()
    runs.replay(DAYS[0], DAYS[1])
    check_sweep(runs)
    columns = runs.columns("track_order")
    runs.storage.delete_folder(lost)
    recover(runs)
    runs.load(DAYS[0], order("m3", f"{DAYS[0]}T07:00", n=1), name="c")
    assert runs.ids("track_order") == ["m3"]
    assert runs.columns("track_order") == columns
    check_sweep(runs)
    documented = runs.read(paths.table_folder(SOURCE_ID, "track_order"))
    assert [row["message_id"] for row in documented] == ["m3"]


def test_an_empty_lake_has_nothing_to_recover(runs: Runs) -> None:
    assert recover(runs) == Rebuilt()
