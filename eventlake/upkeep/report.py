"""What an upkeep did: kept in the lake for a while."""

from collections.abc import Iterator
from datetime import datetime

import msgspec

from eventlake.compaction.compact import Compacted
from eventlake.rules import paths
from eventlake.storage import Storage
from eventlake.storage.documents import decode, encode
from eventlake.upkeep.areas import Amount

KEPT = 100
"""Of each source; one a day is more than a quarter of a year."""


class UpkeepReport(msgspec.Struct, frozen=True):
    """Files and bytes by kind: what lay there before and after, and what was removed."""

    source_id: str
    run_id: str
    dagster_run_id: str
    start_time: datetime
    finish_time: datetime
    before: dict[str, Amount]
    after: dict[str, Amount]
    removed: dict[str, Amount]  # by reason
    compacted: Compacted
    index_days: tuple[str, ...] = ()  # that left the id index
    orphans: Amount = Amount()  # seen, and waiting for their time
    warnings: tuple[str, ...] = ()
    dry_run: bool = False  # nothing was done: this is what would be

    @property
    def seconds(self) -> float:
        return (self.finish_time - self.start_time).total_seconds()


def write_report(storage: Storage, report: UpkeepReport) -> None:
    """Put it beside the others, of which the oldest go."""
    storage.write(paths.upkeep_report(report.source_id, report.run_id), encode(report))
    known = storage.files(paths.upkeep_reports(report.source_id))
    for file in sorted(known, key=lambda file: file.path)[:-KEPT]:
        storage.delete(file.path)


def newest_upkeeps(storage: Storage, source_id: str) -> Iterator[UpkeepReport]:
    files = sorted(storage.files(paths.upkeep_reports(source_id)), key=lambda f: f.path)
    for file in reversed(files):
        if data := storage.read(file.path):
            yield decode(data, UpkeepReport, file.path)
