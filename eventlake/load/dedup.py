"""A dedup task: compares all ids of a range of buckets with each other and with the index."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import pyarrow as pa

from eventlake.columnar.id_hashes import BUCKETS, checksums, words
from eventlake.load.blobs import Blob, from_ipc
from eventlake.load.seen import positions
from eventlake.rules.duplicates import Events, find_twins
from eventlake.state.id_index import SCHEMA, UNKNOWN, read_index, write_index
from eventlake.state.manifest import IndexFile
from eventlake.storage import Storage


@dataclass(frozen=True)
class DedupJob:
    """What all dedup tasks of a unit share."""

    storage: Storage
    source_id: str
    unit: str
    groups: int  # ranges of buckets, one per task
    window_us: int
    index: tuple[IndexFile, ...]  # of the days within the window
    index_folder: str | None = None  # of a dry run: the folder for its ids

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
    other_payload: int = 0  # duplicates with another payload than the kept event

    def __add__(self, other: "TableIds") -> "TableIds":
        return TableIds(
            self.kept + other.kept,
            self.duplicates + other.duplicates,
            (self.checksum + other.checksum) % 2**64,
            self.other_payload + other.other_payload,
        )


class Deduped(msgspec.Struct):
    """What a dedup task found: positions of duplicates, counts by table, the index it wrote."""

    positions: bytes
    other_payload: bytes  # positions of duplicates with another payload
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
    lake = read_index(job.storage, job.index, buckets)
    where = positions(ids["file"].to_numpy(), ids["line"].to_numpy())
    events = Events(words(ids["id"].combine_chunks()), ids["received"].to_numpy(), where)
    twins = find_twins(events, Events(lake.ids, lake.received), job.window_us)
    duplicate = twins >= 0
    payloads = np.r_[ids["payload"].to_numpy(), lake.payloads]
    of_twin = payloads[twins]  # of kept ones any: they are no duplicates
    other = duplicate & (of_twin != payloads[: len(ids)]) & (of_twin != UNKNOWN)
    kept = ids.filter(pa.array(~duplicate)).select(SCHEMA.names)
    index = write_index(job.storage, job.source_id, job.unit, kept, buckets, job.index_folder)
    return Deduped(
        where[duplicate].tobytes(),
        where[other].tobytes(),
        _by_table(ids, duplicate, other),
        list(index),
    )


def _by_table(ids: pa.Table, duplicate: np.ndarray, other: np.ndarray) -> dict[str, TableIds]:
    tables = ids["table"].combine_chunks()
    codes, names = tables.indices.to_numpy(), tables.dictionary.to_pylist()
    kept, duplicates, others = (
        np.bincount(codes[which], minlength=len(names)).tolist()
        for which in (~duplicate, duplicate, other)
    )
    sums = checksums(ids["id"].combine_chunks(), np.where(duplicate, len(names), codes))
    return {
        table: TableIds(kept[code], duplicates[code], sums.get(code, 0), others[code])
        for code, table in enumerate(names)
    }
