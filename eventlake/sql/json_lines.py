"""Files of one JSON object a line, as Arrow."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pyarrow as pa

from eventlake.rules.errors import StateError
from eventlake.storage import Storage

_LINES = msgspec.json.Decoder(dict[str, Any])


def json_rows(
    storage: Storage, files: Sequence[tuple[str, dict[str, str]]], schema: pa.Schema
) -> pa.Table:
    """The objects in some files, each with what is known of its file: that counts more."""
    contents = storage.read_many([path for path, _ in files])
    batches = [
        _batch(path, data or b"", known, schema)
        for (path, known), data in zip(files, contents, strict=True)
    ]
    return pa.Table.from_batches(batches, schema)


def _batch(path: str, data: bytes, known: dict[str, str], schema: pa.Schema) -> pa.RecordBatch:
    try:
        rows = [row | known for row in _LINES.decode_lines(data)]
    except msgspec.MsgspecError as error:
        raise StateError(
            f"{path} is not one JSON object a line ({error}). It was damaged or edited; "
            "restore the file from a backup, or remove it."
        ) from None
    columns = [_column([row.get(field.name) for row in rows], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(kind):
        # Reports of the original product have nanoseconds; ours are cut to what Parquet keeps.
        exact = pa.array(values, pa.string()).cast(pa.timestamp("ns"))
        return exact.cast(pa.timestamp("us"), safe=False).cast(kind)
    if pa.types.is_nested(kind):
        values = [_plain(value, kind) for value in values]
    return pa.array(values, kind)


def _plain(value: Any, kind: pa.DataType) -> Any:
    """A value as Arrow takes it: maps as lists of pairs."""
    if value is None:
        return None
    if pa.types.is_list(kind):
        return [_plain(item, kind.value_type) for item in value]
    if pa.types.is_map(kind):
        return list(value.items())
    return value
