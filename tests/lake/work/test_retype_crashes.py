"""Wherever a change of types breaks off, readers see the table whole, and the next run goes on."""

from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from lake.work import placing
from lake.work.dataflow import InProcess
from tests.lake.archive import track
from tests.lake.failing_storage import Fault, Faults
from tests.lake.retyping import days_of_a_replay, seen, wish
from tests.lake.runs import Runs
from tests.lake.work.test_crashes import MOST_CHANGES, broken_off, snapshot

Step = Callable[[Runs], None]
COLUMN = "track_order.n"


def two_days(runs: Runs) -> None:
    """Whole numbers, but for one that is rescued."""
    for day in ("2026-10-01", "2026-10-02"):
        runs.archive.day(day).file("a", track("Order", day, f"{day}T07:00", n=1))
    runs.sync()
    runs.archive.day("2026-10-02").file("b", track("Order", "text", "2026-10-01T07:00", n="two"))
    runs.sync()


def wished(runs: Runs) -> None:
    two_days(runs)
    wish(runs, COLUMN, "string")


def half_replayed(runs: Runs) -> None:
    """One day has its shadows, the other has none."""
    wished(runs)
    days = days_of_a_replay(runs, "2026-10-01", "2026-10-03")
    next(days)
    days.close()


def replay(runs: Runs) -> None:
    runs.replay("2026-10-01", "2026-10-03")


def growing_sync(runs: Runs) -> None:
    """Into partitions with shadows and without, old and new; some get one file, some get two."""
    day = runs.archive.day("2026-10-03")
    day.file(
        "a",
        track("Order", "late a", "2026-10-01T07:00", n=3),
        track("Order", "late b", "2026-10-02T07:00", n=4),
        track("Order", "new a", "2026-10-01T12:00", n=5),
    )
    day.file("b", track("Order", "late c", "2026-10-01T07:00", n=6, more="x"))
    runs.sync()


def sync_and_replay(runs: Runs) -> None:
    runs.sync()
    runs.replay("2026-10-01", "2026-10-04")


def make_wish(runs: Runs) -> None:
    wish(runs, COLUMN, "string")


CASES: dict[str, tuple[Step, Step, Step]] = {
    # what was before, what breaks off, what is done then
    "wish": (two_days, make_wish, make_wish),
    "replay": (wished, replay, replay),
    "sync": (half_replayed, growing_sync, sync_and_replay),
}


@pytest.mark.parametrize(
    ("case", "fault"),
    [*product(["wish", "replay"], Fault), ("sync", Fault.DEATH)],
)
def test_a_change_of_types_that_breaks_off_anywhere_is_made_good(
    tmp_path: Path, case: str, fault: Fault
) -> None:
    before, step, again = CASES[case]
    base = tmp_path / "base"
    base.mkdir()
    before(Runs(base))
    undisturbed = Faults()
    whole = broken_off(base, tmp_path / "whole", step, undisturbed)
    states = [seen(Runs(base), COLUMN), seen(whole, COLUMN)]
    assert states[0][0] == "bigint"
    again(whole)
    wanted, end = snapshot(whole, summed=False), seen(whole, COLUMN)
    assert wanted["left"] == [[], [], None, []]
    assert (end[0] == "string") is (case != "wish")
    assert 3 < undisturbed.changes < MOST_CHANGES
    for at, change in enumerate(undisturbed.log):
        if fault is Fault.LOST_ANSWER and not change.startswith("create"):
            continue
        runs = broken_off(base, tmp_path / str(at), step, Faults(fault, at))
        kind, values = seen(runs, COLUMN)
        # What a sync adds is seen partition by partition, but never in the wrong type.
        some = any(kind == k and values.items() <= v.items() for k, v in states)
        assert some and len(values) >= len(states[0][1]), f"{fault} at {change}"
        again(runs)
        assert (snapshot(runs, summed=False), seen(runs, COLUMN)) == (wanted, end), change
        assert bool(runs.state().wishes) is (case == "wish")


@pytest.fixture(autouse=True)
def _small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placing, "SPLIT_BYTES", 2500)
    monkeypatch.setattr(InProcess, "slots", 2)
