"""What another type would do to a column, counted in the lake's own files."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq

from eventlake.lake import Lake
from eventlake.load.column_casts import cast_column
from eventlake.retype.originals import ColumnReader, Originals
from eventlake.retype.target import Target
from eventlake.rules.casts import Outcome, cast, text_of
from eventlake.rules.counts import CastCounts
from eventlake.rules.types import LakeType

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
