"""A lake that is synced and kept up for a month: what it keeps for itself stops growing."""

from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta

import msgspec
import pytest

from eventlake.rules import clock, paths
from eventlake.runs.context import RunContext
from eventlake.runs.unit import Window
from eventlake.state.manifest import RunKind
from eventlake.upkeep import removal
from eventlake.upkeep import upkeep as upkeep_module
from eventlake.upkeep.upkeep import upkeep
from tests.support.faults.failing_storage import lying, needed
from tests.support.lakes.archive import order
from tests.support.lakes.runs import SOURCE_ID, Runs, utc
from tests.support.oracles.invariants import check_invariants, held_ids

SYNCS_A_DAY = 3


class SimulatedRuns(Runs):
    """Runs that begin when a simulated clock says so."""

    time = utc("2026-01-01")

    def context(self, kind: RunKind = RunKind.SYNC, window: Window | None = None) -> RunContext:
        context = super().context(kind, window)
        facts = msgspec.structs.replace(context.facts, start_time=self.time)
        return replace(context, facts=facts)

    def a_day(self, sent: set[str]) -> None:
        """Syncs with duplicates of the day before and a row that comes nine days late."""
        for sync in range(SYNCS_A_DAY):
            self.time += timedelta(hours=24 / SYNCS_A_DAY)
            day = self.archive.day(f"{self.time - timedelta(hours=1):%Y-%m-%d}")
            times = [self.time - timedelta(hours=hours) for hours in (2, 1, 9 * 24)]
            ids = [f"{at:%m-%d %H}" for at in times]
            copy = f"{self.time - timedelta(hours=26):%m-%d %H}"
            lines = [order(id, _text(at), n=sync) for id, at in zip(ids, times, strict=True)]
            day.file(f"{sync}", *lines, order(copy, _text(times[0])))
            sent |= {*ids, copy}
            self.sync()
        upkeep(self.context(RunKind.UPKEEP), self.time)


def _text(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M}"


def kept(runs: Runs) -> Counter[str]:
    """How many files there are, by kind, of what the lake keeps for itself."""
    own = paths.source_state(SOURCE_ID)
    files = [*runs.storage.files(own), *runs.storage.files("sync_tracking_datasets")]
    names = [file.path.removeprefix(f"{own}/").split("/")[0] for file in files]
    return Counter(name for name in names if name != "ledger")  # a page for each day of the archive


def test_the_state_stays_small_for_a_month(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = SimulatedRuns(
        runs.root,
        start="2025-12-01",
        dedup_days=3,
        retention={"index_days": 5, "record_log_days": 4},
        compaction={"min_files": 2},
    )
    monkeypatch.setattr(clock, "read", lambda: runs.time)
    monkeypatch.setattr(removal, "KEPT", 12)
    monkeypatch.setattr(upkeep_module, "KEPT", 7)
    sent: set[str] = set()
    counts: list[Counter[str]] = []
    sizes: list[int] = []
    for _ in range(30):
        runs.a_day(sent)
        counts.append(kept(runs))
        sizes.append(len(runs.storage.read(paths.state_file(SOURCE_ID)) or b""))
    assert held_ids(runs).keys() == sent
    check_invariants(runs)
    for kind in set().union(*counts):
        settled, later = (max(day[kind] for day in part) for part in (counts[8:18], counts[18:]))
        assert later <= settled, (kind, [day[kind] for day in counts])
    assert max(sizes[18:]) <= max(sizes[8:18]) + 100
    assert len(runs.storage.files(paths.ledger_pages(SOURCE_ID))) <= 31
    # One file a partition, but for the last day's; of what was replaced that of a day is left.
    spare = lying(runs) - needed(runs)
    assert len(spare) < 40
    files = [partition.files for partition in runs.partitions("track_order").values()]
    assert files.count(1) >= len(files) - 6
