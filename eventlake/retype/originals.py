"""The values that a column was made from, as far as the lake itself can tell.

A cell that lost something has its original in `rescued_data`, to the letter. Of all others only the
cell is left, and more than one value may have become it: `3` in a bigint column was `3`, `3.0`,
`3e0` or "3"; `[1]` in a string column was an array or a text; a timestamp was written in any of the
forms of a date. For each of these the cast into every other type ends alike, exact, lossy or
failed, so that the counts are right, though a string column will hold what was written. One
thing leaves no trace: an empty text is null in every column but a string one.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from eventlake.load.encoding import Encoding
from eventlake.retype.target import Target
from eventlake.rules.casts import Cell, Outcome, cast
from eventlake.rules.inference import Leaf
from eventlake.rules.names import RESCUED_DATA, column_name, pointer_path
from eventlake.rules.parse import parse_value
from eventlake.rules.types import LakeType

_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])


@dataclass(frozen=True, slots=True)
class Originals:
    """Of some rows: the cells that lost nothing, encoded as if just read, and all rescued values.

    `cells` are the same as they stand in the column, for people to look at.
    """

    encoding: Encoding
    encoded: pa.Array
    cells: pa.Array
    rescued: list[Leaf]


@dataclass(frozen=True)
class ColumnReader:
    """Finds the originals of one column in rows of its table."""

    target: Target
    _feeds: dict[str, bool] = field(default_factory=dict)  # by pointer

    @property
    def columns(self) -> list[str]:
        """What has to be read of a file."""
        return [self.target.column.name, RESCUED_DATA]

    def read(self, rows: pa.RecordBatch) -> Originals:
        """Older files lack the column or `rescued_data`: that is as if all were null."""
        of_type = self.target.column.type.arrow
        cells = _column(rows, self.target.column.name, of_type)
        texts = _column(rows, RESCUED_DATA, pa.string())
        rescued = dict(self._rescued(cells, texts)) if texts.null_count < len(texts) else {}
        if rescued:
            kept = pa.array([row not in rescued for row in range(len(cells))])
            cells = pc.if_else(kept, cells, pa.scalar(None, of_type))
        return Originals(*_encoded(cells, self.target.column.type), cells, list(rescued.values()))

    def _rescued(self, cells: pa.Array, texts: pa.Array) -> Iterator[tuple[int, Leaf]]:
        """Rows whose cell stands for a rescued value, and that value."""
        rows = pc.indices_nonzero(texts.is_valid())
        known = _plain(cells.take(rows))
        for row, cell, text in zip(
            rows.to_pylist(), known, texts.take(rows).to_pylist(), strict=True
        ):
            members = [(at, raw) for at, raw in _MEMBERS.decode(text).items() if self._is_mine(at)]
            if members and (found := self._original(cell, members)) is not None:
                yield row, found

    def _original(self, cell: Cell, members: list[tuple[str, msgspec.Raw]]) -> Leaf | None:
        """The value that became the cell; others met it in the column and had to give way.

        These stand behind it, where it was rescued at all.
        """
        for _, raw in members:
            value: Leaf = parse_value(bytes(raw).decode())
            if cell is None or cast(value, self.target.column.type) == (cell, Outcome.LOSSY):
                return value
        return None

    def _is_mine(self, pointer: str) -> bool:
        """Whether a field goes to this column."""
        if pointer not in self._feeds:
            source = self.target.source
            keys, length = source.date_partition.keys, source.limits.column_name
            name = column_name(pointer_path(pointer), source.naming, keys, length)
            self._feeds[pointer] = name == self.target.column.name
        return self._feeds[pointer]


def _column(rows: pa.RecordBatch, name: str, type: pa.DataType) -> pa.Array:
    return rows[name] if name in rows.schema.names else pa.nulls(len(rows), type)


def _encoded(cells: pa.Array, type: LakeType) -> tuple[Encoding, pa.Array]:
    match type:
        case LakeType.BIGINT:
            return Encoding.INT, cells
        case LakeType.BOOLEAN:
            return Encoding.BOOL, cells
        case LakeType.DECIMAL:
            return Encoding.NUMBER, cells.cast(pa.string())
        case LakeType.STRING:
            return Encoding.TEXT, cells
        case LakeType.TIMESTAMP:
            # Some text that is a date: to all types it is the same which.
            a_date = pa.scalar("1970-01-01", pa.string())
            return Encoding.TEXT, pc.if_else(cells.is_valid(), a_date, None)


def _plain(cells: pa.Array) -> list[Cell]:
    """Cells as casts give them: timestamps are microseconds."""
    if pa.types.is_timestamp(cells.type):
        cells = cells.cast(pa.int64())
    plain: list[Cell] = cells.to_pylist()
    return plain
