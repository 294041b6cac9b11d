"""Wherever a run breaks off, one more undisturbed run ends in the lake of an undisturbed one."""

import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lake import paths
from lake.state import holder
from lake.storage import LocalStorage
from lake.work import placing
from lake.work.dataflow import InProcess
from tests.lake.archive import identify, track
from tests.lake.failing_storage import Broken, FailingStorage, Fault, Faults
from tests.lake.runs import SOURCE_ID, Runs

MOST_CHANGES = 200
SUMMED = ("row_count", "rows_in", "duplicates", "rejected", "files_written", "raw_files")


def first_sync(runs: Runs) -> None:
    """Two day folders, so that one is published when the other breaks off."""
    runs.archive.day("2026-10-01").file(
        "a",
        track("Order", "m1", "2026-10-01T07:00", price=1),
        identify("m2", "2026-10-01T07:00"),
        "no JSON",
    )
    runs.archive.day("2026-10-02").file(
        "a",
        track("Order", "m3", "2026-10-01T07:10", price=2),
        track("Order", "m1", "2026-10-02T07:00", price=1),
    )
    runs.sync()


def growth(runs: Runs) -> None:
    """A partition that gets one file more, and one that gets two and moves with what it held."""
    day = runs.archive.day("2026-10-02")
    day.file("b", track("Order", "m4", "2026-10-01T07:20", price="cheap", size="L"))
    day.file(
        "c",
        track("Order", "m5", "2026-10-01T07:30", price=1),
        track("Order", "m1", "2026-10-01T07:30", price=1),
        identify("m6", "2026-10-01T07:30"),
    )
    runs.sync()
    [grown] = runs.partitions("identify").values()
    [moved] = runs.partitions("track_order").values()
    assert ("/_v/" in grown.location, grown.files) == (False, 2)
    assert ("/_v/" in moved.location, moved.files) == (True, 4)


def replay(runs: Runs) -> None:
    """Two days, one after the other."""
    runs.replay("2026-10-01", "2026-10-03")


def snapshot(runs: Runs, summed: bool) -> dict[str, Any]:
    """All that must be the same, whatever happened."""
    sums: Counter[str] = Counter()
    for lines in runs.reports().values():
        sums.update({name: lines[0][name] for name in SUMMED})
    return {
        "columns": {table: runs.columns(table) for table in runs.tables()},
        "rows": {table: sorted(map(repr, runs.rows(table))) for table in runs.tables()},
        "ledger": runs.ledger(),
        "index": runs.index(),
        "sums": (sums, sorted(runs.records())) if summed else None,
        "left": [
            runs.storage.files("segment-stage"),
            runs.storage.files(paths.open_runs(SOURCE_ID)),
            runs.storage.read(paths.lease(SOURCE_ID)),
            [
                file.path
                for file in runs.storage.files("sync_tracking_datasets")
                if file.name == "metadata.json"
                and b'"running"' in (runs.storage.read(file.path) or b"")
            ],
        ],
    }


Step = Callable[[Runs], None]


def broken_off(base: Path, root: Path, step: Step, faults: Faults) -> Runs:
    """A copy of a lake in which a step breaks off; whoever breaks off is dead at once."""
    shutil.copytree(base, root)
    runs = Runs(root, first_run=10)
    runs.storage = FailingStorage(str(root), faults)
    with suppress(Broken), pytest.MonkeyPatch.context() as patch:
        patch.setattr(holder, "LIFETIME", timedelta(0))
        step(runs)
    runs.storage = LocalStorage(str(root))
    return runs


@pytest.mark.parametrize("fault", list(Fault))
@pytest.mark.parametrize("step", [first_sync, growth, replay])
def test_a_run_that_breaks_off_anywhere_is_made_good_by_the_next(
    tmp_path: Path, step: Step, fault: Fault
) -> None:
    base = tmp_path / "base"
    base.mkdir()
    if step is not first_sync:
        first_sync(Runs(base))
    again = replay if step is replay else Runs.sync
    # A replay that is launched again counts the days anew that it had published.
    summed = step is not replay
    undisturbed = Faults()
    wanted = snapshot(broken_off(base, tmp_path / "whole", step, undisturbed), summed)
    assert wanted["left"] == [[], [], None, []]
    assert 15 < undisturbed.changes < MOST_CHANGES
    for at, change in enumerate(undisturbed.log):
        if fault is Fault.LOST_ANSWER and not change.startswith("create"):
            continue  # to all others it is the same whether they were made
        faults = Faults(fault, at)
        runs = broken_off(base, tmp_path / str(at), step, faults)
        again(runs)
        assert snapshot(runs, summed) == wanted, f"{fault} at {change}"


@pytest.fixture(autouse=True)
def _small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placing, "SPLIT_BYTES", 2500)
    monkeypatch.setattr(InProcess, "slots", 2)
