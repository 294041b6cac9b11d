"""Blobs of staged rows: what they are called, and their columns beside the events' own.

A blob has the rows of a table and partition, or of several partitions one after the other: then its
key says how many rows each of them has.
"""

from collections.abc import Mapping
from functools import lru_cache

import msgspec
import pyarrow as pa

from eventlake.casting.encoding import ARROW_TYPES, Encoding
from eventlake.columnar.id_hashes import ID_BYTES
from eventlake.staging.blob import Blob, packed, packed_message, unpacked, unpacked_message

FILE, LINE, ID, RECEIVED = "#file", "#line", "#id", "#received"
RESCUED, PAYLOAD, HASH = "#rescued", "#payload", "#hash"
"""Columns that accompany staged rows; field names of events always begin with a slash."""
RARE = "#rare-"
"""With an encoding after it, a column of lists: each row has, of the fields that are rare and
written in this way, the number and the value of those that it has. What these numbers mean is told
by `StagedHead.rare`."""

_ROWS = "\t"  # before their number; like a line break, in no name of a table or partition

ORIGINS = pa.schema(
    [(FILE, pa.int32()), (LINE, pa.int32()), (ID, pa.binary(ID_BYTES)), (RECEIVED, pa.int64())]
)
"""Where rows are from; payloads come after it, and what was rescued, if there are any."""
PAYLOADS, RESCUED_LISTS = pa.field(PAYLOAD, pa.string()), pa.field(RESCUED, pa.list_(pa.string()))


class StagedField(msgspec.Struct, array_like=True, frozen=True):
    """A field of staged rows that has a column there: where it goes to, and how it is written."""

    pointer: str
    column: str
    encoding: Encoding


class RareName(msgspec.Struct, array_like=True, frozen=True):
    """What the number of a rare field stands for."""

    number: int
    pointer: str
    column: str


class StagedHead(msgspec.Struct, array_like=True, frozen=True):
    """The columns of staged rows, in this order, after those that say where they are from.

    A schema of Arrow's takes longer to be written and read than all that is cast.
    """

    payloads: bool
    rescued: bool
    fields: list[StagedField]
    rare: dict[Encoding, list[RareName]]

    def encode(self) -> bytes:
        return packed(pa.py_buffer(msgspec.msgpack.encode(self)))

    @classmethod
    def decode(cls, data: bytes) -> "StagedHead":
        return _decode_head(unpacked(data))

    def schema(self) -> pa.Schema:
        fields = [_arrow_field(field.pointer, field.encoding) for field in self.fields]
        lists = [pa.field(f"{RARE}{encoding}", _LISTS[encoding]) for encoding in self.rare]
        extra = [PAYLOADS] * self.payloads + [RESCUED_LISTS] * self.rescued
        return pa.schema([*ORIGINS, *extra, *fields, *lists])


_decode_head = msgspec.msgpack.Decoder(StagedHead).decode
_LISTS = {
    encoding: pa.list_(pa.struct([("field", pa.uint16()), ("value", type)]))
    for encoding, type in ARROW_TYPES.items()
}


@lru_cache(1 << 16)  # most tables have fields of the same names
def _arrow_field(pointer: str, encoding: Encoding) -> pa.Field:
    return pa.field(pointer, ARROW_TYPES[encoding])


def rows_of(blob: Blob) -> tuple[StagedHead, pa.RecordBatch]:
    """The rows of a blob, and what it says of their columns."""
    data, message = unpacked_message(blob.data)
    head = StagedHead.decode(data)
    return head, pa.ipc.read_record_batch(message, head.schema())


def rows_key(table: str, partition: str) -> str:
    return f"{table}\n{partition}"


def split_key(key: str) -> tuple[str, str]:
    table, partition = key.split("\n")
    return table, partition


def joint_key(table: str, rows: Mapping[str, int]) -> str:
    """The key of a blob with so many rows of each of these partitions, in this order."""
    return "\n".join([table, *(f"{name}{_ROWS}{count}" for name, count in rows.items())])


def table_of(blob: Blob) -> str:
    return blob.key.partition("\n")[0]


def parts_of(blob: Blob) -> dict[str, int]:
    """The keys of the partitions that a blob has rows of, and how many, in their order."""
    table, *partitions = blob.key.split("\n")
    if _ROWS not in partitions[0]:
        return {blob.key: blob.rows}
    counts = (partition.split(_ROWS) for partition in partitions)
    return {rows_key(table, partition): int(rows) for partition, rows in counts}


def divided(blob: Blob) -> list[Blob]:
    """The same rows, with a blob for each partition."""
    parts = parts_of(blob)
    if len(parts) == 1:
        return [blob]
    (head, batch), start, found = rows_of(blob), 0, []
    told = head.encode()
    for key, rows in parts.items():
        data = packed_message(told, batch.slice(start, rows).serialize())
        found.append(blob._replace(key=key, rows=rows, data=data))
        start += rows
    return found
