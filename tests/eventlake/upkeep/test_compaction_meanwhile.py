"""Compaction while somebody reads all the time and syncs go on: whole partitions, fewer files."""

import random
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.faults.machines import at_once
from tests.support.lakes.archive import track
from tests.support.lakes.runs import Runs
from tests.support.lakes.watching import NOTHING, Look, by_locations, by_sql, watched
from tests.support.oracles.invariants import check_invariants, check_sweep

DAYS = ("2026-10-01", "2026-10-02")
SYNCS = 12


def put(runs: Runs, number: int) -> None:
    for day in DAYS:
        lines = [track("Order", f"{day} {number} {n}", f"{day}T07:{n:02}", v=n) for n in range(5)]
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
