"""Small files: partitions that compaction should have put together by now."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from eventlake.catalog.base import CatalogPartition, partition_day
from eventlake.checking.rules import verdict
from eventlake.rules.partitions import DatePartition
from eventlake.rules.types import TableSchema
from eventlake.runs.verify import CheckResult
from eventlake.settings.models.models import Source
from eventlake.upkeep.candidates import Candidate, candidates

_ITS_TURN = timedelta(days=1)
"""What became due within it the next upkeep still has to do."""


def check_small_files(
    source: Source,
    schema: TableSchema,
    layout: DatePartition,
    partitions: Sequence[CatalogPartition],
    now: datetime,
) -> CheckResult:
    """The rule is that of compaction, so that upkeep mends what is told here."""
    rule = source.compaction
    last_day = (now - timedelta(days=rule.after_days) - _ITS_TURN).date().isoformat()
    known = ((partition_day(layout.keys, p.values), Candidate(schema, p)) for p in partitions)
    due = candidates(known, rule, last_day)
    files, held = sum(p.files for p in partitions), sum(p.bytes for p in partitions)
    problems = [
        f"{'/'.join(p.values)}: {p.files} files of {p.bytes // p.files:,} bytes on average"
        for p in (one.partition for one in due)
    ]
    evidence = {
        "partitions": len(partitions),
        "files": files,
        "most_files_in_a_partition": max((p.files for p in partitions), default=0),
        "average_bytes": held // files if files else 0,
        "files_to_save": sum(one.saved for one in due),
    }
    return verdict(schema.key, "small_files", problems, evidence, _remedy(source))


def _remedy(source: Source) -> str:
    switched_on = "" if source.compaction.enabled else "Set `compaction.enabled: true`. "
    return (
        f"{switched_on}The job `upkeep_{source.name}` and `datalake upkeep --source {source.slug}` "
        "compact them: see whether its schedule is on, and what its runs say."
    )
