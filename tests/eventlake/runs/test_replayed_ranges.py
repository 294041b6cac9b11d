"""The result of a replay is that of one unit over its whole range, however it came about.

The reference is made from the specification: rows are an id, a time, a table and a place in the
archive; a sync adds what has no twin in the lake, a replay first removes all of its range.
"""

import os
import shutil
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from tempfile import mkdtemp

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from eventlake.rules import paths
from eventlake.runs.context import Published
from eventlake.runs.replay import replay_units
from eventlake.runs.unit import Window
from eventlake.state.manifest import RunKind
from eventlake.upkeep.recovery import rebuild, recover
from eventlake.upkeep.upkeep import upkeep
from tests.support.lakes.archive import Line, identify, page, track
from tests.support.lakes.retyping import lake_of, no_lease_is_held, request_type
from tests.support.lakes.runs import Runs, utc

D1, D2, D3, D4, D5 = (f"2026-10-0{n}" for n in range(1, 6))


def order(id: str, day: str, hour: str = "07") -> Line:
    return track("Order", id, f"{day}T{hour}:00", n=1)


def held(runs: Runs) -> list[tuple[str, str]]:
    """Id and day of each row."""
    rows = (row for table in runs.tables() for row in runs.rows(table))
    return sorted((row["message_id"], row["day"]) for row in rows)


@pytest.mark.parametrize("tables", [(), ("track_order",)])
@pytest.mark.parametrize("still_there", [True, False])
def test_a_late_copy_of_an_earlier_day_is_the_one_that_a_replay_of_both_keeps(
    runs: Runs, still_there: bool, tables: tuple[str, ...]
) -> None:
    runs.set(start=D1)
    runs.load(D2, order("A", D2), order("B", D2))
    runs.archive.day(D1).file("late", order("A", D1), page("P", D1))
    assert runs.sync().duplicates == 1
    if not still_there:
        runs.archive.day(D2).file("a", order("B", D2))
    for _ in range(2):
        runs.replay(D1, D3, *tables)
        assert held(runs) == [("A", D1), ("B", D2), ("P", D1)]


def without_its_first_file(runs: Runs) -> None:
    """A is on the first day, a copy of it on the third; the raw file of the first is gone."""
    path = runs.archive.day(D1).file("a", order("A", D1))
    for day in (D1, D2, D3):
        runs.archive.day(day).file("b", order(day, day))
    runs.archive.day(D3).file("c", order("A", D3))
    assert runs.sync().duplicates == 1
    path.unlink()


def test_a_row_that_moves_to_a_later_day_is_never_missing(runs: Runs) -> None:
    without_its_first_file(runs)
    window = Window(utc(D1), utc(D5))
    units = replay_units(runs.context(RunKind.REPLAY, window), window, accept_changes=True)
    for _ in units:
        assert ("A", D3) in held(runs)
    assert held(runs) == [(D1, D1), (D2, D2), (D3, D3), ("A", D3)]
    assert any("Rows move to other days" in line for line in runs.logged)


def test_a_replay_that_frees_a_copy_outside_its_range_names_the_range_to_replay(
    runs: Runs,
) -> None:
    without_its_first_file(runs)
    runs.replay(D1, D2)
    assert ("A", D3) not in held(runs)
    assert runs.state().freed == {D3: 1}
    asked = f"datalake replay --source shop --from {D3}T00 --to {D4}T00"
    assert any(asked in warning for warning in runs.warnings)
    runs.replay(D3, D4, "track_order")
    assert ("A", D3) in held(runs)
    assert runs.state().freed == {D3: 1}  # there may be copies in other tables
    runs.replay(D3, D4)
    assert runs.state().freed == {}


# The reference.

WEEK = timedelta(days=7)
FIRST = utc(D1)
HOURS = (-5, 0, 7, 8, 23, 31)  # from the midnight of a day folder
LAST = 9  # days


@dataclass(frozen=True, order=True)
class Event:
    """Ordered as the earliest is chosen."""

    at: datetime
    file: str
    line: int
    id: str
    table: str

    def is_twin_of(self, other: "Event") -> bool:
        return self.id == other.id and abs(self.at - other.at) <= WEEK

    def __str__(self) -> str:
        return f"{self.id} in {self.table} at {self.at:%dT%H}"


def added(lake: Iterable[Event], new: Iterable[Event]) -> set[Event]:
    """A lake after one unit of work."""
    kept = set(lake)
    for event in sorted(new):
        if not any(event.is_twin_of(other) for other in kept):
            kept.add(event)
    return kept


@dataclass(frozen=True)
class Scope:
    start: datetime
    end: datetime
    tables: tuple[str, ...]

    def has(self, event: Event) -> bool:
        return self.start <= event.at < self.end and (not self.tables or event.table in self.tables)


Lines = tuple[tuple[str, int, str], ...]
"""Id, hour (from the day folder on) and table of each line of a raw file."""

lines = st.lists(
    st.tuples(
        st.sampled_from("ABC"), st.sampled_from(HOURS), st.sampled_from(["track_order", "identify"])
    ),
    min_size=1,
    max_size=3,
).map(tuple)
days = st.integers(0, LAST)
tables = st.sampled_from([(), (), ("track_order",), ("identify",)])
hours = st.lists(st.sampled_from(range(0, 24 * (LAST + 1), 7)), min_size=2, max_size=2, unique=True)
spans = st.one_of(
    st.lists(days, min_size=2, max_size=2, unique=True).map(lambda d: [n * 24 for n in d]), hours
)
scopes = st.builds(
    lambda span, tables: Scope(
        FIRST + timedelta(hours=min(span)), FIRST + timedelta(hours=max(span)), tables
    ),
    spans,
    tables,
)


class Ranges(RuleBasedStateMachine):
    """A lake, the reference of it, and its archive."""

    @initialize()
    def begin(self) -> None:
        self.root = Path(mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(os, "fsync", lambda _: None)
        self.runs = Runs(self.root, start=D1, compaction={"min_files": 2})
        self.archive: dict[str, Lines] = {}
        self.loaded: set[str] = set()
        self.lake: set[Event] = set()
        self.read: set[Event] = set()  # by syncs and replays
        self.file(0, (("A", 7, "track_order"), ("B", 31, "identify")))
        self.sync()

    def teardown(self) -> None:
        if hasattr(self, "root"):
            self.patch.undo()
            shutil.rmtree(self.root)

    @rule(day=days, lines=lines)
    def file(self, day: int, lines: Lines) -> None:
        self._write(f"{day:02}-{len(self.archive):03}", lines)

    @rule(draw=st.data(), lines=lines)
    def change(self, draw: st.DataObject, lines: Lines) -> None:
        self._write(draw.draw(st.sampled_from(sorted(self.archive))), lines)

    @precondition(lambda self: any(self.archive.values()))
    @rule(draw=st.data())
    def remove(self, draw: st.DataObject) -> None:
        name = draw.draw(st.sampled_from([n for n in sorted(self.archive) if self.archive[n]]))
        self._path(name).unlink()
        self.read -= {*self._events([name])}
        self.archive[name] = ()

    @rule()
    def sync(self) -> None:
        self.runs.sync()
        new = {name for name, lines in self.archive.items() if lines} - self.loaded
        self.loaded |= new
        self.lake = added(self.lake, self._events(new))
        self.read |= {*self._events(new)}
        self._check()

    @rule(scope=scopes)
    def replay(self, scope: Scope) -> None:
        before, scope = self.lake, self._of_known_tables(scope)
        for _ in self._units(scope):
            self._nothing_is_missing(before, scope)
        self._replayed(scope)

    @rule(scope=scopes, units=st.integers(0, 3))
    def cancelled_and_continued(self, scope: Scope, units: int) -> None:
        before, scope = self.lake, self._of_known_tables(scope)
        going = self._units(scope)
        for _ in islice(going, units):
            self._nothing_is_missing(before, scope)
        going.close()
        for _ in self._units(scope):
            self._nothing_is_missing(before, scope)
        self._replayed(scope)

    @precondition(lambda self: any(event.table == "track_order" for event in self.lake))
    @rule(type=st.sampled_from(["string", "bigint", "decimal(38,6)"]))
    def retype(self, type: str) -> None:
        request_type(self.runs, "track_order.n", type)
        self.replay(Scope(FIRST, FIRST + timedelta(days=LAST + 2), ("track_order",)))
        assert self.runs.state().requested_types == {}

    @rule(hours=st.sampled_from([0, 25, 50, 24 * 60]))
    def upkeep(self, hours: int) -> None:
        """Compaction, partitions that come home, clean-up, as after some hours."""
        upkeep(self.runs.context(RunKind.UPKEEP), datetime.now(UTC) + timedelta(hours=hours))
        self._check()

    @rule()
    def recover(self) -> None:
        recover(lake_of(self.runs), self.runs.source, datetime.now(UTC))
        self._check()

    @rule(with_catalog=st.booleans())
    def lose_the_state(self, with_catalog: bool) -> None:
        """At rest, when no folder has replaced files; the next sync reads all raw files again."""
        for _ in range(2):
            self.upkeep(24 * 60)
        if with_catalog:
            shutil.rmtree(self.root / "segment-data/_state")
        else:
            self.runs.storage.delete(paths.state_file("S1"))
        rebuild(lake_of(self.runs), self.runs.source, no_lease_is_held)
        self.read = set()
        if with_catalog:
            self.loaded = set()
        self._check()
        self.sync()

    def _units(self, scope: Scope) -> Generator[Published, None, None]:
        window, tables = Window(scope.start, scope.end), frozenset(scope.tables) or None
        context = self.runs.context(RunKind.REPLAY, window)
        return replay_units(context, window, tables, accept_changes=True)

    def _of_known_tables(self, scope: Scope) -> Scope:
        """All tables instead of one that is not there."""
        return scope if {*scope.tables} <= {*self.runs.tables()} else replace(scope, tables=())

    def _replayed(self, scope: Scope) -> None:
        self.lake = self._after(self.lake, scope)
        self.read |= {e for e in self._events(self.archive) if scope.has(e)}
        self._check()

    def _after(self, lake: set[Event], scope: Scope) -> set[Event]:
        kept = {event for event in lake if not scope.has(event)}
        return added(kept, (e for e in self._events(self.archive) if scope.has(e)))

    def _check(self) -> None:
        assert sorted(self._held()) == sorted(map(str, self.lake))
        there = self.read.intersection(self._events(self.archive))
        freed = {f"{e.at:%Y-%m-%d}" for e in there if not any(map(e.is_twin_of, self.lake))}
        assert freed <= self.runs.state().freed.keys()

    def _nothing_is_missing(self, before: set[Event], scope: Scope) -> None:
        """What the lake had, and will have, it has at any time."""
        after, now = self._after(before, scope), self._held()
        for event in before:
            if any(map(event.is_twin_of, after)):
                assert any(found.startswith(f"{event.id} ") for found in now), event

    def _held(self) -> list[str]:
        return [
            f"{row['message_id']} in {table} at {utc('1970-01-01') + at:%dT%H}"
            for table in self.runs.tables()
            for row in self.runs.rows(table)
            for at in [timedelta(microseconds=row["received_at"])]
        ]

    def _events(self, names: Iterable[str]) -> Iterator[Event]:
        for name in names:
            for number, (id, hour, table) in enumerate(self.archive[name]):
                at = FIRST + timedelta(days=int(name[:2]), hours=hour)
                yield Event(max(at, FIRST), name, number, id, table)

    def _write(self, name: str, lines: Lines) -> None:
        before = {*self._events([name])} if name in self.archive else set()
        self.archive[name] = lines
        self.read -= before - {*self._events([name])}  # what is put back is to be read again
        content = [_line(event) for event in self._events([name])]
        day = f"{FIRST + timedelta(days=int(name[:2])):%Y-%m-%d}"
        self.runs.archive.day(day).file(name, *content)

    def _path(self, name: str) -> Path:
        [path] = self.runs.archive.folder.glob(f"*/{name}.gz")
        return path


def _line(event: Event) -> Line:
    at = f"{event.at:%Y-%m-%dT%H:%M}"
    named = event.table == "track_order"
    return track("Order", event.id, at, n=1) if named else identify(event.id, at)


def walk(examples: int, steps: int) -> None:
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Ranges, settings=chosen)


def test_any_replay_leaves_the_lake_of_one_unit() -> None:
    walk(examples=20, steps=12)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_any_long_replay_leaves_the_lake_of_one_unit() -> None:
    walk(examples=400, steps=25)
