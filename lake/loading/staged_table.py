"""Staged rows of one table, of any number of partitions, made ready to be written together."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce

import numpy as np
import pyarrow as pa

from lake.counts import add_casts
from lake.dedup.ids import checksums
from lake.loading.rare_values import RareValues, without_lists
from lake.loading.typed_columns import TypedColumns
from lake.loading.typed_rows import TypedRows, typed_rows
from lake.schema import TableSchema
from lake.staging.blob import Blob, unpacked_batch
from lake.staging.places import places
from lake.staging.rows_blob import (
    FILE,
    ID,
    LINE,
    PAYLOAD,
    RECEIVED,
    StagedField,
    fields_metadata,
    parts_of,
    staged_fields,
)

_ORIGINS = (RECEIVED, FILE, LINE, ID, PAYLOAD)


@dataclass(frozen=True, slots=True)
class StagedTable:
    """Rows without their duplicates. Casting a little costs as much as casting some more, so that
    blobs which say how their values are written in the same way are cast as one."""

    batches: Sequence["StagedBatch"]
    order: np.ndarray  # the rows of all batches as they are written: by partition, as received
    origins: pa.Table  # where each of these rows is from
    slices: dict[str, slice]  # which of them belong to which key of staged rows

    @classmethod
    def of(cls, blobs: Iterable[Blob], duplicates: np.ndarray) -> "StagedTable | None":
        """The rows that are kept, if there are any."""
        alike = _alike((blob, unpacked_batch(blob.data)) for blob in blobs)
        in_order = [
            part for batch in alike for blob, _ in batch.parts for part in parts_of(blob).items()
        ]
        batches = [
            StagedBatch.of([rows for _, rows in batch.parts], batch.written.values())
            for batch in alike
        ]
        origins = pa.concat_tables(batch.origins() for batch in batches)
        received, files, lines = (origins[at].to_numpy() for at in (RECEIVED, FILE, LINE))
        kept = np.flatnonzero(~_is_in(duplicates, places(files, lines)))
        if not len(kept):
            return None
        keys = sorted({key for key, _ in in_order})
        code = {key: number for number, key in enumerate(keys)}
        codes = np.repeat([code[key] for key, _ in in_order], [rows for _, rows in in_order])
        order = kept[np.lexsort([lines[kept], files[kept], received[kept], codes[kept]])]
        ends = np.searchsorted(codes[order], np.arange(len(keys) + 1)).tolist()
        slices = {key: slice(ends[number], ends[number + 1]) for key, number in code.items()}
        return cls(
            batches,
            order,
            origins.take(pa.array(order)),
            {key: rows for key, rows in slices.items() if rows.start < rows.stop},
        )

    def checksums(self) -> dict[str, int]:
        """By key of staged rows, a sum over the ids of those that are kept."""
        sizes = [rows.stop - rows.start for rows in self.slices.values()]
        numbers = np.repeat(np.arange(len(sizes)), sizes)
        sums = checksums(self.origins[ID].combine_chunks(), numbers)
        return {key: sums[number] for number, key in enumerate(self.slices)}

    def typed(self, schema: TableSchema) -> TypedRows:
        """All rows in the types of a table, in the order of the files to be written."""
        ends = np.cumsum([len(batch) for batch in self.batches])
        of_batch = np.searchsorted(ends, self.order, side="right")
        typed: list[TypedRows] = []
        for number, (batch, end) in enumerate(zip(self.batches, ends, strict=True)):
            mine = self.order[of_batch == number] - (end - len(batch))
            typed.append(batch.typed(mine, schema))
        if len(typed) == 1:
            return typed[0]
        rows = pa.concat_tables((part.rows.table() for part in typed), promote_options="default")
        # Each is in order, but one comes after the other.
        rows = rows.take(pa.array(np.argsort(np.argsort(of_batch, kind="stable"))))
        return TypedRows(
            TypedColumns.of(rows),
            reduce(add_casts, (part.casts for part in typed)),
            sum(part.rescued_cells for part in typed),
        )


@dataclass(frozen=True, slots=True)
class StagedBatch:
    """Rows of a table in which every field is written in one way, or is rare."""

    rows: pa.Table
    rare: Sequence[RareValues] = ()

    @classmethod
    def of(cls, parts: Sequence[pa.RecordBatch], fields: Iterable[StagedField]) -> "StagedBatch":
        """The rows of parts that have these fields."""
        plain, rare = without_lists(parts)
        tables = map(pa.Table.from_batches, ([part] for part in plain))
        rows = pa.concat_tables(tables, promote_options="default").combine_chunks()
        return cls(rows.replace_schema_metadata(fields_metadata(fields)), rare)

    def __len__(self) -> int:
        return len(self.rows)

    def origins(self) -> pa.Table:
        return self.rows.select([name for name in _ORIGINS if name in self.rows.column_names])

    def typed(self, order: np.ndarray, schema: TableSchema) -> TypedRows:
        """The rows of this order in the types of a table."""
        rare = [values.taken(order, len(self)) for values in self.rare]
        return typed_rows(self.rows.take(pa.array(order)), schema, rare)


def _is_in(some: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Which of the numbers are among some that are sorted."""
    if not len(some):
        return np.zeros(len(numbers), np.bool_)
    at = np.minimum(np.searchsorted(some, numbers), len(some) - 1)
    return np.asarray(some[at] == numbers)


@dataclass(slots=True)
class _Batch:
    """Parts with their blobs, in which every field is written in one way."""

    parts: list[tuple[Blob, pa.RecordBatch]] = field(default_factory=list)
    written: dict[str, StagedField] = field(default_factory=dict)

    def takes(self, blob: Blob, rows: pa.RecordBatch) -> bool:
        """Take one more part, if its fields are written in the same ways."""
        # Most have the very fields of the one before.
        if not self.parts or not rows.schema.equals(self.parts[-1][1].schema, check_metadata=True):
            written = {field.pointer: field for field in staged_fields(rows.schema)}
            if any(self.written.get(name, how) != how for name, how in written.items()):
                return False
            self.written |= written
        self.parts.append((blob, rows))
        return True


def _alike(parts: Iterable[tuple[Blob, pa.RecordBatch]]) -> list[_Batch]:
    """Parts in as few batches as there can be without a field being written in two ways in one."""
    batches: list[_Batch] = []
    for part in parts:
        if not any(batch.takes(*part) for batch in batches):
            batches.append(_Batch())
            batches[-1].takes(*part)
    return batches
