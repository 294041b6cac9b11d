"""The dedup pass of a unit: which rows are duplicates, and what the id index gains."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

import numpy as np

from eventlake.columnar.id_hashes import BUCKETS
from eventlake.load.dedup import DedupJob, TableIds
from eventlake.load.seen import Seen
from eventlake.state.manifest import IndexFile
from eventlake.work.index_window import IndexWindow, index_window
from eventlake.work.unit_work import UnitWork

IDS_PER_GROUP = 250_000
LOOKED_BACK_PER_GROUP = 4_000_000
"""Of the lake's ids that a task compares with, some 60 bytes each while it does."""


@dataclass(frozen=True, slots=True)
class Duplicates:
    """What the dedup pass found: rows to drop, ids by table, what the index gains."""

    places: np.ndarray
    other_payload: np.ndarray  # those of them that say something else than what is kept
    tables: dict[str, TableIds]
    added: tuple[IndexFile, ...]
    window: IndexWindow


def deduplicate(work: UnitWork, seen: Seen) -> Duplicates:
    """Compare the rows of the unit with each other and with the lake."""
    context = work.context
    window = index_window(work, seen.days())
    staged = sum(seen.staged_rows().values())
    looked_back = sum(file.ids for file in window.files)
    job = DedupJob(
        storage=context.storage,
        source_id=context.source.id,
        unit=work.name,
        groups=groups_for(staged, looked_back),
        window_us=timedelta(days=context.source.dedup_days) // timedelta(microseconds=1),
        index=window.files,
        index_folder=work.index_folder,
    )
    parts = work.flow.dedup(job) if staged else []
    tables: dict[str, TableIds] = {}
    for part in parts:
        for table, ids in part.tables.items():
            tables[table] = tables.get(table, TableIds()) + ids
    added = tuple(file for part in parts for file in part.index)
    return Duplicates(
        _sorted_places(part.places for part in parts),
        _sorted_places(part.other_payload for part in parts),
        tables,
        (*window.made, *added),
        window,
    )


def groups_for(staged: int, looked_back: int) -> int:
    """So many tasks that none has too many ids, new ones or old; at most one for each bucket."""
    groups = 1
    while groups < BUCKETS and (
        groups * IDS_PER_GROUP < staged or groups * LOOKED_BACK_PER_GROUP < looked_back
    ):
        groups *= 2
    return groups


def _sorted_places(parts: Iterable[bytes]) -> np.ndarray:
    return np.sort(np.frombuffer(b"".join(parts), np.uint64))
