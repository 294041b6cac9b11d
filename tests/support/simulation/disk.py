"""What lies in a lake, measured once a day: what may grow, and what may not."""

import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from eventlake.catalog.base import Catalog
from eventlake.lake import Lake

# The first that fits; all below the lake's root, of all sources.
_AREAS = {
    "archive": ("segment-logs/",),
    "data": ("segment-data/data/",),
    "reports": ("segment-data/reports/",),
    "record log": ("sync_tracking_datasets/",),
    "staging": ("segment-stage/", "logs/"),
    "catalog": ("segment-data/_state/catalog/",),
    "ledger": ("/ledger/",),
    "id index": ("/ids/",),
    "manifests": ("/manifests/",),
    "upkeep reports": ("/upkeep/reports/",),
    "other state": ("segment-data/_state/",),
}


@dataclass(frozen=True)
class Usage:
    """Files, bytes and folders by area, and data files of the fullest partition."""

    files: Counter[str]
    bytes: Counter[str]
    folders: Counter[str]
    unneeded: int  # data files that no partition leads to
    fullest: int
    scattered: int  # partitions of past days with more files than compaction leaves


def measure(lake: Lake, root: Path, before: str) -> Usage:
    """Hidden files count, too; `before` is the first day that compaction leaves alone."""
    files, sizes, folders = Counter[str](), Counter[str](), Counter[str]()
    for at, _, names in os.walk(root):
        relative = at[len(f"{root}") + 1 :] + "/"
        area = next((a for a, marks in _AREAS.items() if any(m in relative for m in marks)), None)
        if area is None:
            continue
        folders[area] += 1
        files[area] += len(names)
        sizes[area] += sum(os.stat(f"{at}/{name}").st_size for name in names)
    partitions = [p for p in _partitions(lake.catalog, lake) if p[1]]
    return Usage(
        files,
        sizes,
        folders,
        unneeded=files["data"] - sum(files for _, files in partitions),
        fullest=max((files for _, files in partitions), default=0),
        scattered=sum(day < before and files > 2 for day, files in partitions),
    )


def _partitions(catalog: Catalog, lake: Lake) -> list[tuple[str, int]]:
    """The day and the number of files of each."""
    return [
        (partition.values[0], partition.files)
        for source in lake.settings.sources
        for table in catalog.tables(source.database)
        for partition in catalog.partitions(source.database, table.name)
    ]
