"""Data flows that fail, count or are interrupted at one call."""

from collections.abc import Callable, Sequence
from datetime import date, timedelta
from itertools import count

import pytest

from eventlake.load.blobs import Shares
from eventlake.load.seen import Seen
from eventlake.load.stage_job import RawFile, StageJob
from eventlake.load.write import LoadedFile, LoadJob
from eventlake.rules import paths
from tests.support.lakes.archive import order
from tests.support.lakes.in_process import InProcess
from tests.support.lakes.runs import SOURCE_ID, Runs


def flow(
    before_stage: Callable[[StageJob], object] | None = None,
    after_stage: Callable[[StageJob, list[Seen]], list[Seen] | None] | None = None,
    before_load: Callable[[LoadJob], object] | None = None,
    after_load: Callable[[LoadJob, list[LoadedFile]], list[LoadedFile] | None] | None = None,
    slots: int | None = None,
) -> type[InProcess]:
    """A data flow with actions at its calls; those after a call may return another result."""

    class Flow(InProcess):
        def stage(self, job: StageJob, tasks: Sequence[Sequence[RawFile]]) -> list[Seen]:
            if before_stage:
                before_stage(job)
            found = super().stage(job, tasks)
            changed = after_stage(job, found) if after_stage else None
            return found if changed is None else changed

        def load(self, job: LoadJob, shares: Shares) -> list[LoadedFile]:
            if before_load:
                before_load(job)
            written = super().load(job, shares)
            changed = after_load(job, written) if after_load else None
            return written if changed is None else changed

    if slots:
        Flow.slots = slots
    return Flow


class Raises:
    """An action that raises an error, at every call or only at the given one; counts the calls."""

    def __init__(self, error: BaseException, at: int | None = None, of: str = "") -> None:
        self.error, self.at, self.of, self.calls = error, at, of, 0

    def __call__(self, job: StageJob | LoadJob, _: object = None) -> None:
        self.calls += self.of in ("", getattr(job, "operation", ""))
        if self.at in (None, self.calls):
            raise self.error


def overtaken(runs: Runs, other: Callable[[], object], unit: int = 1) -> type[InProcess]:
    """A data flow in which another run starts and ends during the given unit.

    The other run takes the lease for expired.
    """
    loads = count(1)

    def overtake(*_: object) -> None:
        if next(loads) == unit:
            runs.flow = InProcess
            runs.storage.delete(paths.lease(SOURCE_ID))
            other()

    return flow(after_load=overtake)


def warned_of_conflict(runs: Runs) -> bool:
    return any("Another run committed manifest" in warning for warning in runs.warnings)


FIRST = date(2026, 9, 1)


class Counting(InProcess):
    """Counts the rows it stages to load them; cancelled in the middle of the given unit."""

    rows = 0
    units = 0
    cancelled_at: int | None = None

    def stage(self, job: StageJob, tasks: Sequence[Sequence[RawFile]]) -> list[Seen]:
        found = super().stage(job, tasks)
        if not job.ids_only:
            Counting.rows += sum(one.rows_in for one in found)
            Counting.units += 1
        return found

    def load(self, job: LoadJob, shares: Shares) -> list[LoadedFile]:
        written = super().load(job, shares)
        if Counting.units == Counting.cancelled_at:
            raise KeyboardInterrupt
        return written


def load_days(runs: Runs, days: int) -> tuple[str, str]:
    """So many days in the lake, with copies of rows across them; the range that holds them."""
    for number in range(days):
        day, morrow = (f"{FIRST + timedelta(days=number + n)}" for n in (0, 1))
        runs.archive.day(day).file(
            "a",
            *(order(f"{day}-{n}", f"{day}T07:0{n}", n=n) for n in range(6)),
            order(f"{number // 3}", f"{day}T07:30"),
            order(f"late {day}", f"{morrow}T07:00"),
        )
    runs.sync()
    runs.flow = Counting
    return f"{FIRST}", f"{FIRST + timedelta(days=days)}"


def cancel(runs: Runs, at_unit: int, *span: str) -> None:
    """Launch the replay and cancel it in the middle of a unit (counted over all launches)."""
    Counting.cancelled_at = at_unit
    with pytest.raises(KeyboardInterrupt):
        runs.replay(*span)
    Counting.cancelled_at = None
