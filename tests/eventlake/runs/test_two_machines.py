"""Two machines at work on one source at the same time: nothing is lost, nothing doubled."""

import random
import time
from pathlib import Path

import pytest

from tests.support.faults.machines import at_once
from tests.support.lakes.archive import identify, order
from tests.support.lakes.runs import Runs
from tests.support.oracles.invariants import check_invariants, check_sweep, held_ids
from tests.support.seeds import first_seed

DAYS = ("2026-10-01", "2026-10-02", "2026-10-03")
ENDS = ("2026-10-02", "2026-10-03", "2026-10-04")


def put_files(runs: Runs, names: str) -> set[str]:
    """A file for each day and name; each has an event of its own and one that all have."""
    ids: set[str] = set()
    for day in DAYS:
        for name in names:
            own = f"{day} {name}"
            ids |= {own, f"{day} shared"}
            lines = [
                order(own, f"{day}T07:00", n=len(ids)),
                identify(f"{day} shared", f"{day}T08:00"),
            ]
            runs.archive.day(day).file(name, *lines)
    return ids


def three_syncs(runs: Runs, chance: random.Random) -> None:
    for _ in range(3):
        runs.sync()


def syncs_and_replays(runs: Runs, chance: random.Random) -> None:
    """Ten in random order."""
    for _ in range(10):
        if chance.random() < 0.4:
            runs.sync()
        else:
            day = chance.randrange(3)
            tables = chance.choice([(), (), ("track_order",), ("identify",)])
            runs.replay(DAYS[day], ENDS[chance.randrange(day, 3)], *tables)


def growing_archive(runs: Runs, chance: random.Random) -> None:
    """Files come while others work; they are put there whole, as archives do."""
    for name in "stuvw":
        for day in chance.sample(DAYS, 2):
            put_one(runs, day, name)
        runs.sync()


def compactions(runs: Runs, chance: random.Random) -> None:
    deadline = time.monotonic() + 60
    while not runs.tables():
        assert time.monotonic() < deadline, "no other machine loads anything"
        time.sleep(0.005)
    for _ in range(6):
        runs.compact()


def put_one(runs: Runs, day: str, name: str) -> None:
    line = order(f"{day} {name}", f"{day}T09:00", n=1, late=name)
    aside = runs.archive.day(day).file(f".{name}", line)
    aside.rename(aside.with_name(f"{name}.gz"))


@pytest.mark.parametrize("leases", [True, False], ids=["with leases", "without"])
def test_two_concurrent_syncs_load_every_event_once(in_memory: Path, leases: bool) -> None:
    runs = Runs(in_memory)
    ids = put_files(runs, "abcd")
    works = [three_syncs, three_syncs]
    logged = at_once(in_memory, works, seed=1, leases=leases, conflicting=2)
    assert held_ids(runs).keys() == ids
    check_invariants(runs)
    check_sweep(runs)
    synced = [lines[0] for lines in runs.reports().values()]
    assert sum(line["row_count"] for line in synced) == len(ids)
    assert sum(line["raw_files"] for line in synced) == 12
    assert any("Waiting for" in line for line in logged) == leases
    assert any("Another run committed" in line for line in logged) == (not leases)


@pytest.mark.parametrize("leases", [True, False], ids=["with leases", "without"])
def test_runs_of_four_machines_in_any_order(in_memory: Path, leases: bool) -> None:
    tell(in_memory, seed=7, leases=leases)


@pytest.mark.soak
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("leases", [True, False], ids=["with leases", "without"])
def test_many_such_orders(in_memory: Path, leases: bool) -> None:
    first = first_seed()
    for seed in range(first, first + 20):
        folder = in_memory / str(seed)
        folder.mkdir()
        tell(folder, seed, leases)


def tell(root: Path, seed: int, leases: bool) -> None:
    runs = Runs(root)
    ids = put_files(runs, "ab")
    works = [syncs_and_replays, syncs_and_replays, growing_archive, compactions]
    logged = at_once(root, works, seed, leases, conflicting=3)
    runs.sync()
    check_invariants(runs)
    check_sweep(runs)
    late = {f"{day} {name}" for day in DAYS for name in "stuvw"}
    came = {path.name for path in runs.archive.folder.rglob("?.gz")}
    assert came == {f"{name}.gz" for name in "abstuvw"}, seed
    held = held_ids(runs).keys()
    assert ids <= held <= ids | late, seed
    assert len(held) == len(ids) + 10, seed
    assert any("Waiting for" in line for line in logged) == leases, seed
    if not leases:
        assert any("Another run committed" in line for line in logged), seed
