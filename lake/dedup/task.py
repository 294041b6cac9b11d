"""One dedup task: all ids of a range of buckets, against each other and against the index."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import pyarrow as pa

from lake.dedup.ids import BUCKETS, checksum, words
from lake.dedup.index import SCHEMA, read_index, write_index
from lake.dedup.rule import find_duplicates
from lake.staging.blob import Blob, from_ipc
from lake.staging.places import places
from lake.state.manifest import IndexFile
from lake.storage import Storage


@dataclass(frozen=True)
class DedupJob:
    """What all dedup tasks of a unit share."""

    storage: Storage
    source_id: str
    unit: str
    groups: int  # ranges of buckets, each one task
    window_us: int
    index: tuple[IndexFile, ...]  # of the days within the window

    def group_of(self, bucket: str) -> int:
        return int(bucket) * self.groups // BUCKETS

    def buckets(self, group: int) -> tuple[int, int]:
        width = BUCKETS // self.groups
        return group * width, (group + 1) * width


class TableIds(msgspec.Struct):
    """The ids of a table: how many were duplicates, how many are kept, and which."""

    kept: int = 0
    duplicates: int = 0
    checksum: int = 0

    def __add__(self, other: "TableIds") -> "TableIds":
        total = (self.checksum + other.checksum) % 2**64
        return TableIds(self.kept + other.kept, self.duplicates + other.duplicates, total)


class Deduped(msgspec.Struct):
    """What a dedup task found: places of duplicates, counts by table, the index it wrote."""

    places: bytes
    tables: dict[str, TableIds]
    index: list[IndexFile]

    def encode(self) -> bytes:
        return msgspec.msgpack.encode(self)

    @classmethod
    def decode(cls, data: bytes) -> "Deduped":
        return msgspec.msgpack.decode(data, type=cls)


def dedup(job: DedupJob, group: int, blobs: Sequence[Blob]) -> Deduped:
    """Find the duplicates among the ids of one range of buckets; index those that are kept."""
    ids = pa.concat_tables(from_ipc(blob.data) for blob in blobs).unify_dictionaries()
    ids = ids.combine_chunks()
    buckets = job.buckets(group)
    lake_ids, lake_received = read_index(job.storage, job.index, buckets)
    files, lines = ids["file"].to_numpy(), ids["line"].to_numpy()
    received = ids["received"].to_numpy()
    duplicate = find_duplicates(
        words(ids["id"].combine_chunks()),
        received,
        files,
        lines,
        lake_ids,
        lake_received,
        job.window_us,
    )
    kept = ids.filter(pa.array(~duplicate))
    index = write_index(job.storage, job.source_id, job.unit, kept.select(SCHEMA.names), buckets)
    return Deduped(
        places(files, lines)[duplicate].tobytes(), _by_table(ids, duplicate), list(index)
    )


def _by_table(ids: pa.Table, duplicate: np.ndarray) -> dict[str, TableIds]:
    tables = ids["table"].combine_chunks()
    codes = tables.indices.to_numpy()
    hashes = ids["id"].combine_chunks()
    found: dict[str, TableIds] = {}
    for code, table in enumerate(tables.dictionary.to_pylist()):
        mine = codes == code
        kept = mine & ~duplicate
        found[table] = TableIds(
            int(kept.sum()), int((mine & duplicate).sum()), checksum(hashes.filter(pa.array(kept)))
        )
    return found
