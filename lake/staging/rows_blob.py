"""Blobs of staged rows: what they are called, and their columns beside the events' own.

A blob has the rows of a table and partition, or of several partitions one after the other: then its
key says how many rows each of them has.
"""

from collections.abc import Iterable, Mapping

import msgspec
import pyarrow as pa

from lake.casting.encoding import Encoding
from lake.staging.blob import Blob, message_packer, unpacked_batch

FILE, LINE, ID, RECEIVED = "#file", "#line", "#id", "#received"
RESCUED, PAYLOAD, HASH = "#rescued", "#payload", "#hash"
"""Columns that accompany staged rows; field names of events always begin with a slash."""
RARE = "#rare-"
"""With an encoding after it, a column of lists: each row has, of the fields that are rare and
written in this way, the number and the value of those that it has. What these numbers mean is told
by the metadata of the column (`rare_metadata`)."""

_ROWS = "\t"  # before their number; like a line break, in no name of a table or partition


class StagedField(msgspec.Struct, array_like=True, frozen=True):
    """A field of staged rows that has a column there: which one it goes to, and how it is written.

    Arrow could keep this with each column; what it takes to read it there is more than to cast it.
    """

    pointer: str
    column: str
    encoding: Encoding


def fields_metadata(fields: Iterable[StagedField]) -> dict[str, bytes]:
    """What staged rows say of their fields, as metadata of their schema."""
    return {_FIELDS: msgspec.msgpack.encode(list(fields))}


def staged_fields(schema: pa.Schema) -> list[StagedField]:
    fields: list[StagedField] = _decode_fields(schema.metadata[_FIELDS.encode()])
    return fields


_FIELDS = "fields"
_decode_fields = msgspec.msgpack.Decoder(list[StagedField]).decode


class RareName(msgspec.Struct, array_like=True, frozen=True):
    """What the number of a rare field stands for."""

    number: int
    pointer: str
    column: str


def rare_metadata(names: list[RareName]) -> dict[str, bytes]:
    return {_FIELDS: msgspec.msgpack.encode(names)}


def rare_names(metadata: Mapping[bytes, bytes]) -> list[RareName]:
    names: list[RareName] = msgspec.msgpack.decode(metadata[_FIELDS.encode()], type=list[RareName])
    return names


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
    batch, start, found = unpacked_batch(blob.data), 0, []
    pack = message_packer(batch.schema)
    for key, rows in parts.items():
        data = pack(batch.slice(start, rows).serialize())
        found.append(blob._replace(key=key, rows=rows, data=data))
        start += rows
    return found
