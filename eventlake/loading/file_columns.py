"""What a Parquet file says of its columns, whatever their values: in the words of arro3."""

from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from io import BytesIO

import pyarrow as pa
from arro3.io import write_parquet

from eventlake.loading.footer import before_rows, varint

STRING, INTEGER, MOMENT, EXACT, TRUTH = range(5)
TYPES = {
    pa.string(): STRING,
    pa.int64(): INTEGER,
    pa.timestamp("us", tz="UTC"): MOMENT,
    pa.decimal128(38, 6): EXACT,
    pa.bool_(): TRUTH,
}
"""Types that columns can have; Arrow's own are slow to be looked up again and again."""

_STRUCT = 12  # of Thrift's compact protocol
_FIELDS = 10_000  # that are remembered, of all tables
_NAME = "column"


def before_groups(names: Iterable[str], types: Sequence[int]) -> bytes:
    """How the footer of every file of these columns begins, up to the number of rows.

    As arro3 would write it, which takes 10 µs for each of the columns.
    """
    version, root = _begin()
    elements = b"".join(map(_element, names, types))
    children = varint(2 * len(types)) + b"\0"
    return version + _count(len(types) + 1) + root + children + elements


def after_groups(columns: int) -> bytes:
    """How it ends: who made the file, and that values are ordered as their types say."""
    return b"\x28\x08datalake\x19" + _count(columns) + b"\x1c\0\0" * columns + b"\0"


def _count(structs: int) -> bytes:
    """What a list of so many structs begins with."""
    return bytes([structs << 4 | _STRUCT]) if structs < 15 else b"\xfc" + varint(structs)


@cache
def _begin() -> tuple[bytes, bytes]:
    """What comes before the count of the schema's elements, and what follows it up to the count of
    columns."""
    empty = _before(pa.schema([]))
    return empty[:3], empty[4:-2]


@lru_cache(maxsize=_FIELDS)
def _element(name: str, number: int) -> bytes:
    """How a column is described."""
    before, after = _around_name(number)
    encoded = name.encode()
    return before + varint(len(encoded)) + encoded + after


@cache
def _around_name(number: int) -> tuple[bytes, bytes]:
    """What stands beside its name: taken from what a file with it has more than one without."""
    [kind] = [kind for kind, other in TYPES.items() if other == number]
    element = _before(pa.schema([(_NAME, kind)]))[len(_before(pa.schema([]))) :]
    before, after = element.split(varint(len(_NAME)) + _NAME.encode())
    return before, after


def _before(schema: pa.Schema) -> bytes:
    out = BytesIO()
    write_parquet(schema.empty_table(), out, skip_arrow_metadata=True)
    return before_rows(out.getvalue(), 0)
