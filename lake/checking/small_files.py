"""Small files: partitions cut into so many that reading them costs more than it need."""

from collections.abc import Sequence

from lake.catalog.base import CatalogPartition
from lake.checking.rules import verdict
from lake.work.checks import CheckResult

MANY_FILES = 8
"""More of them in one partition are too many, if they are small."""
SMALL_BYTES = 32 << 20
"""An average below it is small: opening such a file takes about as long as reading it."""
_REMEDY = (
    "Let the upkeep job of the source run: it compacts them. Where almost every partition has "
    "little in it, a layout with fewer partitions (`date_partition: day`) suits the source better."
)


def check_small_files(table: str, partitions: Sequence[CatalogPartition]) -> CheckResult:
    cut = sorted(filter(is_cut_small, partitions), key=lambda one: -one.files)
    files, held = sum(p.files for p in partitions), sum(p.bytes for p in partitions)
    problems = [
        f"{'/'.join(one.values)}: {one.files} files of {one.bytes // one.files:,} bytes on average"
        for one in cut
    ]
    evidence = {
        "partitions": len(partitions),
        "files": files,
        "most_files_in_a_partition": max((p.files for p in partitions), default=0),
        "average_bytes": held // files if files else 0,
        "files_in_cut_partitions": sum(p.files for p in cut),
    }
    return verdict(table, "small_files", problems, evidence, _REMEDY)


def is_cut_small(partition: CatalogPartition) -> bool:
    small = partition.bytes < partition.files * SMALL_BYTES
    return partition.files > MANY_FILES and small
