"""The files that lie in the locations of partitions, at this moment."""

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from eventlake.catalog.base import CatalogPartition, CatalogTable
from eventlake.rules.errors import StateError
from eventlake.storage import Storage, StoredFile

_MANY = 50
"""From so many partitions below one folder on, listing the whole folder is cheaper."""


def partition_files(
    storage: Storage, table: CatalogTable, partitions: Sequence[CatalogPartition]
) -> list[list[StoredFile]]:
    """The data files of each partition; one that has none where the catalog says is an error."""
    depth = len(table.partition_keys)
    roots = {p.location: p.location.rsplit("/", depth)[0] for p in partitions}
    crowds = Counter(roots.values())
    folders = {root if crowds[root] >= _MANY else place for place, root in roots.items()}
    files: dict[str, list[StoredFile]] = {place: [] for place in roots}
    with ThreadPoolExecutor(16) as pool:
        for found in pool.map(storage.files, sorted(folders)):
            for file in found:
                owner = _owner(file, table, files)
                if owner is not None:
                    files[owner].append(file)
    for partition in partitions:
        if not files[partition.location]:
            raise _vanished(table, partition)
    return [files[partition.location] for partition in partitions]


def _owner(
    file: StoredFile, table: CatalogTable, locations: dict[str, list[StoredFile]]
) -> str | None:
    """The location a file belongs to; of reports it may lie deeper, in the folder of its run."""
    if not file.name.endswith(f".{table.format}") or file.name.startswith("_"):
        return None
    folder = file.path.rpartition("/")[0]
    while table.format == "json" and folder and folder not in locations:
        folder = folder.rpartition("/")[0]
    return folder if folder in locations else None


def _vanished(table: CatalogTable, partition: CatalogPartition) -> StateError:
    named = "/".join(map("=".join, zip(table.partition_keys, partition.values, strict=True)))
    return StateError(
        f"The catalog says that partition {named} of {table.full_name} lies in "
        f"{partition.location}, but there is no .{table.format} file in that folder. If a run has "
        "moved it just now, ask again; otherwise replay that time to write it anew."
    )
