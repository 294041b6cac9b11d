"""Runs of a lake on any storage, with any catalog, and all that must be the same there."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eventlake.catalog.base import Catalog
from eventlake.lake import Lake
from tests.support.faults.cases import first_sync, growing_sync, replay
from tests.support.lakes.archive import order
from tests.support.lakes.retyping import request_type
from tests.support.lakes.runs import Runs
from tests.support.lakes.settings import settings_of

PLACES_AND_TIMES = ("finish_time", "duration_mins", "s3_bucket")


class PlacedRuns(Runs):
    """Raw files are written below `root` and carried to the lake before each run."""

    def __init__(self, root: Path, place: str, more: Mapping[str, Any], **source: Any) -> None:
        self._place, self._more = place, more
        super().__init__(root, **source)
        self.storage = self._lake.storage

    def set(self, **source: Any) -> None:
        super().set(**source)
        sources = self.settings.model_dump(exclude_unset=True)["sources"]
        self.settings = settings_of(self._place, *sources, **self._more)
        self._lake = Lake.open(self.settings)

    @property
    def catalog(self) -> Catalog:
        return self._lake.catalog


def all_steps(runs: Runs) -> None:
    """Two days, a partition that grows and one that moves, broken and late files, a replay,
    another type, and then nothing more to do."""
    first_sync(runs)
    growing_sync(runs)
    day = runs.archive.day("2026-10-03")
    day.file("cut", order("m8", "2026-10-03T01:00", price=3), keep=0.7)
    day.raw("dummy-object.txt", b"")
    runs.sync()
    replay(runs)
    request_type(runs, "track_order.price", "string")
    runs.replay("2026-10-01", "2026-10-04")
    runs.sync()


def everything(runs: Runs) -> dict[str, Any]:
    """All that must be the same wherever the lake lies; reports to the byte."""
    reports = {}
    for run, lines in runs.reports().items():
        assert {line["s3_bucket"] for line in lines} == {runs.settings.bucket}
        reports[run] = [
            json.dumps({k: v for k, v in line.items() if k not in PLACES_AND_TIMES})
            for line in lines
        ]
    data = [file.path for file in runs.storage.files("segment-data/data")]
    return {
        "reports": reports,
        "columns": {table: runs.columns(table) for table in runs.tables()},
        "partitions": {table: runs.partitions(table) for table in runs.tables()},
        "rows": {table: runs.rows(table) for table in runs.tables()},
        "files": dict(zip(data, runs.storage.read_many(data), strict=True)),
        "ledger": {
            name: (entry.path, entry.size, entry.lines, entry.hours, entry.broken)
            for name, entry in runs.ledger().items()
        },
        "index": runs.index(),
        "records": sorted(runs.records()),
        "paths": [file.path for file in runs.storage.files("")],
    }
