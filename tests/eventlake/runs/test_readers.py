"""Whoever reads through the catalog sees partitions as one commit left them, or as the next did."""

import random
import shutil
import time
from pathlib import Path

import pytest

from tests.support.lakes.archive import identify, track
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

pytestmark = pytest.mark.usefixtures("small_files")
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
        lines = [
            track("Order", f"{name} {hour} {n}", f"{day}T{hour}:{n:02}", v=version, text="x" * 99)
            for hour in HOURS
            for n in range(8)
        ]
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


def tell(root: Path, look: Look, seconds: float, seed: int) -> int:
    story = Story(Runs(root, start=DAYS[0]), seed)
    story.next()  # so that there is a table to look at
    with watched(root, TABLE, look) as watcher:
        end = time.monotonic() + seconds
        while time.monotonic() < end or story.steps < 8:
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
    assert tell(in_memory, look, seconds=4, seed=1) > 10


@pytest.mark.soak
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("look", [by_sql, by_locations])
def test_a_reader_sees_whole_partitions_for_minutes(in_memory: Path, look: Look) -> None:
    """One lake after the other: in one that only grows, each look takes longer than the last."""
    first, seen = time.time_ns(), 0
    for seed in range(first, first + 9):
        lake = in_memory / str(seed)
        lake.mkdir()
        seen += tell(lake, look, seconds=20, seed=seed)
        shutil.rmtree(lake)
    assert seen > 100


def test_who_sees_a_mixture_is_told(in_memory: Path) -> None:
    """The test itself under test."""
    states = [frozenset({("a", "1")}), frozenset({("a", "2"), ("b", "2")})]
    assert in_order([states[0], states[1]], states)
    assert not in_order([states[1], states[0]], states)
    assert not in_order([frozenset({("a", "1"), ("b", "2")})], states)
