"""What the footers of written files say: how many rows they have, and which columns."""

from collections.abc import Callable
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

LONGEST = 8 << 20
"""Of the end of a file that is kept in memory for its footer; a longer one is read back."""

_TAIL = 8  # the footer's length and the magic bytes come last
# A footer has its version, its columns, the number of rows and the row groups, in this order, in
# Thrift's compact protocol. A field begins with how far its number is from the one before, and its
# type: an integer of 64 bits, a list.
_ROWS, _GROUPS = b"\x16", b"\x19"


class Footer(NamedTuple):
    rows: int
    problems: tuple[str, ...]  # with its columns


class Footers:
    """Reads footers of files that mostly have the same columns.

    Up to the number of rows their footers are then the same, byte for byte: the first is taken
    apart by Arrow, the others are compared with it. What is not as expected, Arrow takes apart.
    """

    def __init__(self, problems: Callable[[pa.Schema], tuple[str, ...]]) -> None:
        self._problems = problems
        self._known: dict[bytes, tuple[str, ...]] = {}  # by what comes before the number of rows

    def read(self, end: bytes | memoryview, rows: int) -> Footer | None:
        """What the end of a file says, which should have so many rows; None if it is too short."""
        footer = _footer(end)
        if footer is None:
            return None
        number = _number(rows)
        for before, problems in self._known.items():
            if footer.startswith(before) and footer.startswith(number, len(before)):
                return Footer(rows, problems)
        metadata = pq.read_metadata(pa.BufferReader(end))
        problems = self._problems(metadata.schema.to_arrow_schema())
        if metadata.num_rows == rows and (at := footer.find(number)) >= 0:
            self._known[footer[:at]] = problems
        return Footer(metadata.num_rows, problems)


def before_rows(end: bytes, rows: int) -> bytes:
    """What a footer says before the number of rows: which columns there are."""
    footer = _footer(end) or b""
    return footer[: footer.index(_number(rows))]


def _number(rows: int) -> bytes:
    return _ROWS + varint(2 * rows) + _GROUPS


def _footer(end: bytes | memoryview) -> bytes | None:
    size = int.from_bytes(end[-_TAIL:-4], "little")
    return bytes(end[-_TAIL - size : -_TAIL]) if size + _TAIL <= len(end) else None


def varint(number: int) -> bytes:
    """Seven bits at a time, the lowest first; all bytes but the last have the highest bit set."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])
