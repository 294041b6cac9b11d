"""Every call of the storage fails once and every change is interrupted; the next run repairs it."""

import random
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from eventlake.storage import local
from tests.support.faults.cases import CASES, CHANGES_OF_TYPES, COMPACTIONS, REPLAYS, SYNCS
from tests.support.faults.failing_storage import Fault, Faults
from tests.support.faults.faults import Case, break_off, hold, make_good, snapshot, sweep
from tests.support.faults.machines import killed_step
from tests.support.faults.places import Bucket, Folders
from tests.support.lakes.archive import identify, order
from tests.support.lakes.runs import Runs
from tests.support.lakes.watching import (
    NOTHING,
    Look,
    Partition,
    State,
    by_locations,
    by_sql,
    watched,
)
from tests.support.repo import injected
from tests.support.seeds import first_seed
from tests.support.servers.aws import AwsServer

pytestmark = pytest.mark.usefixtures("small_files")
LONG = [
    *((case, Fault.UNREADABLE) for case in (*CHANGES_OF_TYPES, *COMPACTIONS)),
    *((CHANGES_OF_TYPES[-1], fault) for fault in Fault),
]
"""They take long: a third of their points by default, all in `make soak`."""


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_call_of_the_store_fails_once(in_memory: Path, case: Case, fault: Fault) -> None:
    every = 3 if (case, fault) in LONG else 1
    assert hold(Folders(in_memory), case, fault, lambda log: range(0, len(log), every)) > 2


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("case", SYNCS, ids=lambda case: case.name)
def test_every_call_fails_once_where_there_is_so_much_that_it_is_done_together(
    in_memory: Path, case: Case, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "MANY", 0)
    assert hold(Folders(in_memory), case, fault) > 2


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("case", (*CHANGES_OF_TYPES, *COMPACTIONS), ids=lambda case: case.name)
def test_every_call_of_a_long_step_fails_once(in_memory: Path, case: Case, fault: Fault) -> None:
    assert hold(Folders(in_memory), case, fault) > 3


STEPS_OF_PUBLICATION = (
    "create segment-data/_state/sources/S1/manifests",
    "place segment-data/data",
    "update segment-data/_state/catalog",
    "update segment-data/_state/sources/S1/ledger",
    "update segment-data/_state/sources/S1/state.json",
    "write segment-data/reports",
    "clear segment-stage",
)


def publication(log: list[str]) -> Iterable[int]:
    """One call for each step of a publication."""
    for step in STEPS_OF_PUBLICATION:
        found = [at for at, call in enumerate(log) if call.startswith(step)]
        yield from found[-1:]


@pytest.fixture
def bucket(aws: AwsServer, in_memory: Path) -> Bucket:
    return Bucket(in_memory, aws, aws.bucket())


@pytest.mark.parametrize(
    ("case", "fault", "steps"),
    [
        (SYNCS[1], Fault.DEATH, len(STEPS_OF_PUBLICATION)),
        (REPLAYS[0], Fault.LOST_ANSWER, 1),  # the commit
        (COMPACTIONS[0], Fault.DEATH, 2),  # the commit, and the first change of a partition
    ],
)
def test_publications_fail_on_s3(bucket: Bucket, case: Case, fault: Fault, steps: int) -> None:
    assert hold(bucket, case, fault, lambda log: [*publication(log)][:steps]) == steps


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_call_of_the_store_fails_once_on_s3(bucket: Bucket, case: Case, fault: Fault) -> None:
    assert hold(bucket, case, fault) > 3


def killed_everywhere(place: Folders, case: Case, after: bool, every: int = 1) -> int:
    """Kill a process at each change that it makes, or at some; how many these were."""
    base = place.new()
    case.before(base)
    undisturbed = Faults()
    whole = break_off(place, place.copy(base, "whole"), case.step, undisturbed)
    make_good(case, whole)
    wanted = snapshot(whole)
    points = list(enumerate(undisturbed.log))[::every]
    for at, change in points:
        root = place.copy(base, str(at)).root
        killed_step(root, case.name, at, after)
        runs = Runs(root, first_run=11)
        make_good(case, runs)
        point = f"killed {'after' if after else 'before'} {change}"
        sweep(runs, point)
        assert snapshot(runs) == wanted, point
        place.forget(runs)
        injected["process killed"] += 1
    return len(points)


def test_a_sync_is_killed_before_some_of_the_changes_it_makes(in_memory: Path) -> None:
    assert killed_everywhere(Folders(in_memory), SYNCS[1], after=False, every=4) >= 6


def test_a_replay_is_killed_after_some_of_the_changes_it_makes(in_memory: Path) -> None:
    assert killed_everywhere(Folders(in_memory), REPLAYS[0], after=True, every=4) >= 6


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_process_is_killed_at_every_change(in_memory: Path, case: Case, after: bool) -> None:
    assert killed_everywhere(Folders(in_memory), case, after) >= 3


DAYS = ("2026-10-01", "2026-10-02")
HOURS = ("07", "08")
TABLE = "track_order"


class Story:
    """Syncs, replays and compactions in random order, and all states that they bring about."""

    def __init__(self, runs: Runs, seed: int) -> None:
        self.runs, self.random = runs, random.Random(seed)
        self.files: dict[tuple[str, str], int] = {}  # day folder and name → version
        self.synced: dict[tuple[str, str], int] = {}
        self.states: dict[Partition, list[State]] = {}
        self.steps = 0

    def next(self) -> None:
        self.steps += 1
        if self.steps < 3:
            return self.sync(files=1)
        step = self.random.choice(
            [
                lambda: self.sync(files=1),
                lambda: self.sync(files=2),
                lambda: self.replay(),
                lambda: self.replay(TABLE),
                lambda: self.replay("identify"),
                lambda: self.runs.compact(),
            ]
        )
        step()

    def sync(self, files: int) -> None:
        """One file goes into the folders that are there; several make partitions anew."""
        day = self.random.choice(DAYS)
        for number in range(files):
            self._write((day, f"{self.steps}-{number}"), version=self.steps)
        self.runs.sync()
        self.synced |= {place: v for place, v in self.files.items() if place not in self.synced}
        self._note()

    def replay(self, *tables: str) -> None:
        """Of files that have changed since."""
        day = self.random.choice(DAYS)
        for place in [place for place in self.files if place[0] == day]:
            self._write(place, version=self.steps)
        end = "2026-10-02" if day == DAYS[0] else "2026-10-03"
        self.runs.replay(day, end, *tables)
        if tables != ("identify",):
            self.synced |= {place: v for place, v in self.files.items() if place[0] == day}
        self._note()

    def _write(self, place: tuple[str, str], version: int) -> None:
        """A file has rows of all hours of its day."""
        day, name = place
        self.files[place] = version
        times = [(hour, n, f"{day}T{hour}:{n:02}") for hour in HOURS for n in range(8)]
        lines = [order(f"{name} {h} {n}", at, v=version, text="x" * 99) for h, n, at in times]
        self.runs.archive.day(day).file(name, *lines, identify(name, f"{day}T07:00"))

    def _note(self) -> None:
        for day in DAYS:
            for hour in HOURS:
                rows = frozenset(
                    (f"{name} {hour} {n}", str(version))
                    for (of, name), version in self.synced.items()
                    if of == day
                    for n in range(8)
                )
                states = self.states.setdefault((day, hour), [NOTHING])
                if states[-1] != rows:
                    states.append(rows)


def in_order(seen: list[State], states: list[State]) -> bool:
    """Whether somebody saw nothing but these states, each at its time; some may be missed."""
    rest = iter(states)
    return all(state in rest for state in seen)


def tell(root: Path, look: Look, steps: int, seed: int) -> int:
    story = Story(Runs(root, start=DAYS[0]), seed)
    story.next()  # so that there is a table to look at
    with watched(root, TABLE, look) as watcher:
        while story.steps < steps:
            story.next()
            watcher.keep_up(story.steps)
    for partition, states in story.states.items():
        seen = watcher.seen.get(partition, [NOTHING])
        assert seen[-1] == states[-1]
        assert in_order(seen, states), f"{partition}: {[s for s in seen if s not in states]}"
    assert watcher.looks > story.steps
    changes = sum(len(seen) for seen in watcher.seen.values())
    print(f"{watcher.looks} looks at {story.steps} steps: {changes} states, all of them whole")
    return changes


@pytest.mark.parametrize("look", [by_sql, by_locations])
def test_a_reader_sees_whole_partitions_all_the_time(in_memory: Path, look: Look) -> None:
    assert tell(in_memory, look, steps=150, seed=1) > 10


@pytest.mark.soak
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("look", [by_sql, by_locations])
def test_a_reader_sees_whole_partitions_for_minutes(in_memory: Path, look: Look) -> None:
    """One lake after the other: in one that only grows, each look takes longer than the last."""
    first, seen = first_seed(), 0
    for seed in range(first, first + 9):
        lake = in_memory / str(seed)
        lake.mkdir()
        seen += tell(lake, look, steps=250, seed=seed)
        shutil.rmtree(lake)
    assert seen > 100


def test_a_mixture_of_states_is_detected(in_memory: Path) -> None:
    """The test itself under test."""
    states = [frozenset({("a", "1")}), frozenset({("a", "2"), ("b", "2")})]
    assert in_order([states[0], states[1]], states)
    assert not in_order([states[1], states[0]], states)
    assert not in_order([frozenset({("a", "1"), ("b", "2")})], states)
