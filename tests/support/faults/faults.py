"""Faults at every call of the store, one at a time: whatever breaks off is made good by one more
run, and the lake is that of an undisturbed one."""

from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from eventlake.rules import paths
from eventlake.runs.clean_up import clean_up
from eventlake.state import lease
from eventlake.state.manifest import read_manifest
from tests.support.faults.failing_storage import Broken, Fault, Faults, lying, needed
from tests.support.faults.places import Place
from tests.support.lakes.retyping import named
from tests.support.lakes.runs import SOURCE_ID, Runs
from tests.support.repo import injected

Step = Callable[[Runs], object]
SUMMED = ("row_count", "rows_in", "duplicates", "rejected", "files_written", "raw_files")
BROKEN_RUN = "R10"


@dataclass(frozen=True)
class Case:
    """What was before, what breaks off, what is done then; a column whose readers are asked."""

    before: Step
    step: Step
    again: Step
    column: str | None = None
    once: bool = False  # what is done then would be done anew if it was done already

    @property
    def name(self) -> str:
        return self.step.__name__


def snapshot(runs: Runs) -> dict[str, Any]:
    """All that must be the same, whatever happened."""
    sums: Counter[str] = Counter()
    for lines in runs.reports().values():
        sums.update({name: lines[0][name] for name in SUMMED})
    tables = runs.tables()
    rows = {table: sorted(map(repr, runs.rows(table))) for table in tables}
    state = runs.state()
    return {
        "columns": {table: runs.columns(table) for table in tables},
        "rows": rows,
        "files": {t: {v: p.files for v, p in runs.partitions(t).items()} for t in tables},
        "stray files": [
            (table, values)
            for table in tables
            for values, partition in runs.partitions(table).items()
            if len(runs.storage.files(partition.location)) != partition.files
        ],
        "counted": {t: state.rows.get(f"shop.{t}", 0) - len(rows[t]) for t in tables},
        "ledger": runs.ledger(),
        "index": runs.index(),
        "sums": sums,
        "records": sorted(runs.records()),
        "left": left(runs),
    }


NOTHING_LEFT: list[Any] = [[], [], None, []]


def left(runs: Runs) -> list[Any]:
    """What no run leaves behind."""
    logs = runs.storage.files("sync_tracking_datasets")
    return [
        runs.storage.files("segment-stage"),
        runs.storage.files(paths.open_runs(SOURCE_ID)),
        runs.storage.read(paths.lease(SOURCE_ID)),
        [
            log.path
            for log in logs
            if log.name == "metadata.json" and b'"running"' in (runs.storage.read(log.path) or b"")
        ],
    ]


def break_off(place: Place, runs: Runs, step: Step, faults: Faults) -> Runs:
    """Break a step off; its lease expires at once."""
    place.fail(runs, faults)
    with suppress(Broken), pytest.MonkeyPatch.context() as patch:
        patch.setattr(lease, "LIFETIME", timedelta(0))
        step(runs)
    place.heal(runs)
    return runs


def hold(
    place: Place,
    case: Case,
    fault: Fault,
    chosen: Callable[[list[str]], Iterable[int]] = lambda log: range(len(log)),
) -> int:
    """Break a step off at every call that can have the fault, or at some; how many these were."""
    base = place.new()
    case.before(base)
    undisturbed = Faults(fault)
    whole = break_off(place, place.copy(base, "whole"), case.step, undisturbed)
    states = [seen(place.look(runs), case.column) for runs in (base, whole) if case.column]
    make_good(case, whole)
    end = place.look(whole)
    wanted, last = snapshot(end), seen(end, case.column) if case.column else None
    assert (wanted["left"], wanted["stray files"]) == (NOTHING_LEFT, [])
    assert set(wanted["counted"].values()) <= {0}
    assert 3 < undisturbed.changes < 400
    points = list(chosen(undisturbed.log))
    for at in points:
        point = f"{fault} at {at}: {undisturbed.log[at]}"
        runs = place.copy(base, str(at))
        break_off(place, runs, case.step, Faults(fault, at))
        if case.column:
            _seen_whole(seen(place.look(runs), case.column), states, point)
        make_good(case, runs)
        end = place.look(runs)
        sweep(end, point)
        assert snapshot(end) == wanted, point
        assert last is None or seen(end, case.column or "") == last, point
        place.forget(runs)
        injected[f"{place.kind}, {fault}"] += 1
    return len(points)


def make_good(case: Case, runs: Runs) -> None:
    """One more run. One that has nothing to load makes up for what is left undone, too."""
    last = read_manifest(runs.storage, SOURCE_ID, _newest_manifest(runs))
    finished = last and last.run_id == BROKEN_RUN and last.finish_time
    (Runs.sync if case.once and finished else case.again)(runs)


def _newest_manifest(runs: Runs) -> int:
    files = runs.storage.files(paths.manifests(SOURCE_ID))
    return int(files[-1].name.removesuffix(".json")) if files else 0


Seen = tuple[str, dict[str, Any]]


def seen(runs: Runs, column: str) -> Seen:
    """What a reader sees: the type of a column, and its values by message id."""
    table, name = named(runs, column)
    types = {column: type for column, type, _ in runs.columns(table)}
    rows = [row for p in runs.partitions(table).values() for row in runs.read(p.location)]
    return types[name], {row["message_id"]: row[name] for row in rows}


def _seen_whole(now: Seen, states: list[Seen], point: str) -> None:
    """What a sync adds is seen partition by partition, but never in the wrong type."""
    kind, values = now
    some = any(kind == k and values.items() <= v.items() for k, v in states)
    assert some and len(values) >= len(states[0][1]), point


def sweep(runs: Runs, point: str) -> None:
    """After the grace period every partition is at home, and no unneeded file is left."""
    runs.come_home()
    clean_up(
        *(runs.storage, runs.catalog, runs.source, runs.state()),
        datetime.now(UTC) + timedelta(hours=25),
    )
    assert all(is_at_home(runs, table) for table in runs.tables()), point
    assert lying(runs) == needed(runs), point


def is_at_home(runs: Runs, table: str) -> bool:
    return all("/versions/" not in p.location for p in runs.partitions(table).values())
