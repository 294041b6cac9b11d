"""Syncs, replays, compactions, changes of types, crashes and recoveries in any order, held to
the plain rules.

The manifests say in which order units of work got into the lake; the reference carries out the
same units, and the lake has to be what it makes of them, with every report.
"""

import os
import shutil
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import mkdtemp

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from eventlake.lake import Lake
from eventlake.rules.types import LakeType
from eventlake.runs import placement
from eventlake.state.manifest import Manifest, RunKind, read_manifest
from eventlake.upkeep.recovery import recover
from eventlake.upkeep.upkeep import UpkeepFailed
from tests.support.faults.failing_storage import Fault, Faults
from tests.support.faults.faults import Step, break_off
from tests.support.faults.places import Folders
from tests.support.lakes.archive import Line, as_line, identify, order
from tests.support.lakes.in_process import InProcess
from tests.support.lakes.retyping import request_type
from tests.support.lakes.runs import SOURCE_ID, Runs, utc
from tests.support.oracles.invariants import check_invariants, check_sweep
from tests.support.oracles.reference import Account, ReferenceLake, Scope
from tests.support.oracles.stories import check_index, check_lake, follow_rescued_data, micros
from tests.support.repo import injected

DAYS = ("2026-10-01", "2026-10-02", "2026-10-03")
END = "2026-10-04"
COLUMN = "properties_n"
COUNTED = ("row_count", "rows_in", "duplicates", "rejected")
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None

ids = st.sampled_from([f"m{n}" for n in range(12)])
times = st.builds(
    lambda day, hour: f"{day}T{hour}:00", st.sampled_from(DAYS), st.sampled_from(["00", "07", "23"])
)
lines: st.SearchStrategy[Line] = st.one_of(
    st.builds(
        lambda id, at, n: order(id, at, n=n), ids, times, st.sampled_from([1, 2.5, "3", "x", True])
    ),
    st.builds(lambda id, at, key: order(id, at, **{key: 1}), ids, times, st.sampled_from("abc")),
    st.builds(identify, ids, times),
    st.just("no JSON"),
)
faults = st.tuples(st.sampled_from(Fault), st.integers(0, 90))
ranges = st.lists(st.sampled_from((*DAYS, END)), min_size=2, max_size=2, unique=True).map(sorted)
tables = st.sampled_from([(), (), ("track_order",), ("identify",)])


class Survival(RuleBasedStateMachine):
    """A lake and the reference of it, which follows its commits."""

    @initialize()
    def begin(self) -> None:
        self.root = Path(mkdtemp(dir=MEMORY))
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(os, "fsync", lambda _: None)
        self.patch.setattr(placement, "SPLIT_BYTES", 220)
        self.patch.setattr(InProcess, "slots", 2)
        self.runs = Runs(self.root, start=DAYS[0], compaction={"min_files": 2})
        self.place = Folders(self.root)
        self.reference = ReferenceLake(self.runs.source)
        self.archive: dict[str, list[bytes]] = {}
        self.waiting: set[str] = set()
        self.requested_types: dict[str, dict[str, LakeType]] = {}
        self.followed = 0
        self.counted: dict[str, Counter[str]] = {}
        self.caught_up = True
        self.file(DAYS[0], [order("m0", f"{DAYS[0]}T07:00", n=1), identify("m1", DAYS[0])])

    def teardown(self) -> None:
        if hasattr(self, "root"):
            self.patch.undo()
            shutil.rmtree(self.root)

    @rule(day=st.sampled_from(DAYS), lines=st.lists(lines, min_size=1, max_size=5))
    def file(self, day: str, lines: list[Line]) -> None:
        path = self.runs.archive.day(day).file(f"{len(self.archive):03}", *lines)
        name = str(path.relative_to(self.root))
        self.archive[name] = [as_line(line) for line in lines]
        self.waiting.add(name)

    @rule()
    def sync(self) -> None:
        self._done(Runs.sync)
        assert self.waiting == set()

    @rule(range=ranges, tables=tables)
    def replay(self, range: list[str], tables: tuple[str, ...]) -> None:
        self._done(lambda runs: runs.replay(*range, *self._known(tables)))

    @rule()
    def compact(self) -> None:
        self._done(Runs.compact)

    @rule(at=st.sampled_from(["2026-10-05", "2026-11-02", "2026-12-24"]))
    def upkeep(self, at: str) -> None:
        """Also long after: days leave the index, and are made anew when they are needed."""
        self._done(lambda runs: runs.upkeep(at))

    @rule(fault=faults)
    def broken_upkeep(self, fault: tuple[Fault, int]) -> None:
        def step(runs: Runs) -> None:
            with suppress(UpkeepFailed):  # it does its other parts all the same
                runs.upkeep("2026-12-24")

        self._broken(step, fault)

    @rule(fault=faults)
    def broken_compaction(self, fault: tuple[Fault, int]) -> None:
        self._broken(Runs.compact, fault)

    @rule(fault=faults)
    def broken_sync(self, fault: tuple[Fault, int]) -> None:
        self._broken(Runs.sync, fault)

    @rule(range=ranges, tables=tables, fault=faults)
    def broken_replay(
        self, range: list[str], tables: tuple[str, ...], fault: tuple[Fault, int]
    ) -> None:
        self._broken(lambda runs: runs.replay(*range, *self._known(tables)), fault)

    @precondition(lambda self: self.caught_up and self._has_column())
    @rule(type=st.sampled_from(["bigint", "string", "decimal(38,6)"]))
    def request(self, type: str) -> None:
        self._done(lambda runs: request_type(runs, "track_order.n", type))

    @precondition(lambda self: "shop.track_order" in self.requested_types)
    @rule(fault=st.none() | faults)
    def switch(self, fault: tuple[Fault, int] | None) -> None:
        """The replay that gives the table its types, broken off or to its end."""
        step: Step = lambda runs: runs.replay(DAYS[0], END, "track_order")  # noqa: E731
        if fault is not None:
            return self._broken(step, fault)
        self._done(step)
        assert self.requested_types == {}

    @rule()
    def recover(self) -> None:
        lake = Lake(self.runs.settings, self.runs.storage, self.runs.catalog)
        self._done(lambda runs: recover(lake, runs.source, datetime.now(UTC)))
        assert not recover(lake, self.runs.source, datetime.now(UTC))

    @precondition(lambda self: self.caught_up)
    @rule()
    def clean_up(self) -> None:
        check_sweep(self.runs)

    @invariant()
    def holds(self) -> None:
        if not getattr(self, "caught_up", False):
            return  # what is committed is not all applied: the next run does it
        follow_rescued_data(self.runs, self.reference)
        check_lake(self.runs, self.reference)
        check_index(self.runs, self.reference)
        check_invariants(self.runs)
        for run, lines in self.runs.reports().items():
            wanted = self.counted.get(run, Counter())
            assert {n: lines[0][n] for n in COUNTED} == {n: wanted[n] for n in COUNTED}, run

    def _known(self, tables: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(table for table in tables if table in self.runs.tables())

    def _has_column(self) -> bool:
        table = self.reference.tables.get("track_order")
        return table is not None and COLUMN in table.columns

    def _done(self, step: Step) -> None:
        step(self.runs)
        self.caught_up = True
        self._follow()

    def _broken(self, step: Step, fault: tuple[Fault, int]) -> None:
        injected["in random walks"] += 1
        break_off(self.place, self.runs, step, Faults(*fault))
        self.caught_up = False
        self._follow()

    def _follow(self) -> None:
        """Let the reference do what was committed since."""
        while manifest := read_manifest(self.runs.storage, SOURCE_ID, self.followed + 1):
            self.followed += 1
            account = self._unit(manifest)
            if account is not None:
                self._count(manifest.run_id, account)
            for table in manifest.retyped:
                self.reference.retype(table.split(".")[1], self.requested_types.pop(table))
            for made in manifest.requested_types:
                types = self.requested_types.setdefault(made.table, {})
                types.pop(made.column, None)
                if made.type is not None:
                    types[made.column] = made.type
                if not types:
                    del self.requested_types[made.table]

    def _unit(self, manifest: Manifest) -> Account | None:
        if manifest.kind is RunKind.SYNC:
            paths = sorted(entry.path for entry in manifest.ledger)
            self.waiting -= set(paths)
            return self.reference.load([self.archive[path] for path in paths])
        step = manifest.replay
        if step is None or not step.days:
            return None
        start = micros(utc(min(step.days)))
        day = micros(utc("1970-01-02")) * len(step.days)
        chosen = frozenset(step.replay.tables) if step.replay.tables else None
        # Of files that no sync has loaded yet it takes those whose folder is near.
        read = {raw.path for raw in step.raw} | (self.archive.keys() - self.waiting)
        files = [self.archive[path] for path in sorted(read)]
        until = micros(step.replay.end)
        return self.reference.load(files, Scope(start, start + day, chosen, until))

    def _count(self, run: str, account: Account) -> None:
        self.counted.setdefault(run, Counter()).update(
            row_count=account.loaded.total(),
            rows_in=account.rows_in,
            duplicates=account.duplicates.total(),
            rejected=account.rejected.total(),
        )


def walk(examples: int, steps: int) -> None:
    health = list(HealthCheck)
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=health,
    )
    run_state_machine_as_test(Survival, settings=chosen)


def test_a_lake_survives_random_histories() -> None:
    walk(examples=20, steps=15)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_a_lake_survives_long_random_histories() -> None:
    walk(examples=400, steps=30)
