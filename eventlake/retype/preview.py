"""What another type would do to a column, counted in the lake's own files.

A cell that lost something has its original in `rescued_data`, to the letter. Of all others only the
cell is left, and more than one value may have become it: `3` in a bigint column was `3`, `3.0`,
`3e0` or "3"; `[1]` in a string column was an array or a text; a timestamp was written in any of the
forms of a date. For each of these the cast into every other type ends alike, exact, lossy or
failed, so that the counts are right, though a string column will hold what was written. One
thing leaves no trace: an empty text is null in every column but a string one.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from eventlake.columnar.kinds import Encoding
from eventlake.lake import Lake
from eventlake.load.column_casts import cast_column
from eventlake.retype.request import Target
from eventlake.rules.casts import Cell, Outcome, cast, text_of
from eventlake.rules.counts import CastCounts
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


EXAMPLES = 5
"""Values that would lose something, shown of each outcome."""


NOTHING = CastCounts()


@dataclass(frozen=True, slots=True)
class PartitionPreview:
    """The rows of a partition, its values by outcome, and how many exact ones are rescued now."""

    values: tuple[str, ...]
    rows: int = 0
    casts: CastCounts = NOTHING
    returning: int = 0


@dataclass(slots=True)
class Preview:
    """All partitions of the table, in order."""

    partitions: list[PartitionPreview] = field(default_factory=list)
    examples: dict[Outcome, list[str]] = field(default_factory=dict)

    @property
    def total(self) -> PartitionPreview:
        parts = self.partitions
        return PartitionPreview(
            (),
            sum(part.rows for part in parts),
            sum((part.casts for part in parts), NOTHING),
            sum(part.returning for part in parts),
        )


def preview(lake: Lake, target: Target, into: LakeType) -> Preview:
    """Cast every value of the column as a replay would; nothing is written."""
    lake = lake.for_source(target.source)
    shown = Preview()
    reader = ColumnReader(target)
    for partition in lake.catalog.partitions(target.schema.database, target.schema.name):
        part = PartitionPreview(partition.values)
        for file in lake.storage.files(partition.location, recursive=False):
            with lake.storage.open_input(file.path) as stream:
                parquet = pq.ParquetFile(stream)
                wanted = [c for c in reader.columns if c in parquet.schema_arrow.names]
                for rows in parquet.iter_batches(columns=wanted):
                    part = _with(part, len(rows), reader.read(rows), into, shown.examples)
        shown.partitions.append(part)
    return shown


def _with(
    part: PartitionPreview,
    rows: int,
    originals: Originals,
    into: LakeType,
    examples: dict[Outcome, list[str]],
) -> PartitionPreview:
    """The partition with some rows more."""
    kept = cast_column(originals.encoded, originals.encoding, into)
    casts = kept.counts(len(originals.cells) - originals.cells.null_count)
    for outcome, mask in ((Outcome.LOSSY, kept.lossy), (Outcome.FAILED, kept.failed)):
        if mask is not None:
            _show(examples, outcome, _texts(originals.cells.filter(mask)))
    returning = 0
    for value in originals.rescued:
        outcome = cast(value, into)[1]
        casts += _one(outcome)
        returning += outcome is Outcome.EXACT
        if outcome is not Outcome.EXACT:
            _show(examples, outcome, [text_of(value)])
    return PartitionPreview(
        part.values, part.rows + rows, part.casts + casts, part.returning + returning
    )


def _one(outcome: Outcome) -> CastCounts:
    return CastCounts(**{outcome.value: 1})


def _show(examples: dict[Outcome, list[str]], outcome: Outcome, texts: Iterable[str]) -> None:
    shown = examples.setdefault(outcome, [])
    for text in texts:
        if len(shown) == EXAMPLES:
            return
        if text not in shown:
            shown.append(text)


def _texts(cells: pa.Array) -> list[str]:
    """Some of the cells as people write them."""
    texts: list[str] = cells.unique().slice(0, EXAMPLES).cast(pa.string()).to_pylist()
    return texts
