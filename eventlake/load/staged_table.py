"""Staged rows of one table, of any number of partitions, prepared for writing."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce

import numpy as np
import pyarrow as pa

from eventlake.columnar.id_hashes import ID_BYTES, checksums
from eventlake.columnar.kinds import Encoding
from eventlake.columnar.typed import TypedColumns
from eventlake.load.blobs import (
    FILE,
    LINE,
    PAYLOAD,
    RECEIVED,
    RESCUED,
    RESCUED_LISTS,
    Blob,
    StagedField,
)
from eventlake.load.seen import positions
from eventlake.load.staged_part import StagedPart, gathered
from eventlake.load.typed_rows import RareNames, StagedRows, TypedRows, rare_values, typed_rows
from eventlake.rules.counts import added
from eventlake.rules.types import TableSchema


@dataclass(frozen=True, slots=True)
class StagedTable:
    """Rows without their duplicates. Casting a little costs as much as casting some more, so that
    blobs which say how their values are written in the same way are cast as one."""

    batches: Sequence["StagedBatch"]
    order: np.ndarray  # the rows of all batches as they are written: by partition, as received
    files: np.ndarray  # where each of these rows is from
    lines: np.ndarray
    slices: dict[str, slice]  # which of them belong to which key of staged rows

    @classmethod
    def of(cls, blobs: Iterable[Blob], duplicates: np.ndarray) -> "StagedTable | None":
        """The rows that are kept, if there are any."""
        batches = _alike(map(StagedPart, blobs))
        parts = [part for batch in batches for part in batch.parts]
        received, files, lines = (
            np.concatenate([part.numbers(at) for part in parts]) for at in (RECEIVED, FILE, LINE)
        )
        kept = np.flatnonzero(~_is_in(duplicates, positions(files, lines)))
        if not len(kept):
            return None
        in_order = [of_partition for part in parts for of_partition in part.partitions.items()]
        keys = sorted({key for key, _ in in_order})
        code = {key: number for number, key in enumerate(keys)}
        codes = np.repeat([code[key] for key, _ in in_order], [rows for _, rows in in_order])
        order = kept[np.lexsort([lines[kept], files[kept], received[kept], codes[kept]])]
        ends = np.searchsorted(codes[order], np.arange(len(keys) + 1)).tolist()
        slices = {key: slice(ends[number], ends[number + 1]) for key, number in code.items()}
        return cls(
            batches,
            order,
            files[order],
            lines[order],
            {key: rows for key, rows in slices.items() if rows.start < rows.stop},
        )

    def checksums(self) -> dict[str, int]:
        """By key of staged rows, a sum over the ids of those that are kept."""
        ids = np.concatenate([part.ids() for batch in self.batches for part in batch.parts])
        data = pa.py_buffer(ids[self.order])
        array = pa.Array.from_buffers(pa.binary(ID_BYTES), len(self.order), [None, data], 0)
        sizes = [rows.stop - rows.start for rows in self.slices.values()]
        sums = checksums(array, np.repeat(np.arange(len(sizes)), sizes))
        return {key: sums[number] for number, key in enumerate(self.slices)}

    def typed(self, schema: TableSchema) -> TypedRows:
        """All rows in the types of a table, in the order of the files to be written."""
        of_batch, orders = self._orders()
        typed = [b.typed(order, schema) for b, order in zip(self.batches, orders, strict=True)]
        if len(typed) == 1:
            return typed[0]
        rows = pa.concat_tables((part.rows.table() for part in typed), promote_options="default")
        return TypedRows(
            TypedColumns.of(rows.take(_back(of_batch))),
            reduce(added, (part.casts for part in typed)),
            sum(part.rescued_cells for part in typed),
        )

    def payloads(self) -> pa.Array | None:
        """The whole events, if they were kept."""
        of_batch, orders = self._orders()
        found = [b.payloads(order) for b, order in zip(self.batches, orders, strict=True)]
        present = [array for array in found if array is not None]
        return pa.concat_arrays(present).take(_back(of_batch)) if present else None

    def _orders(self) -> tuple[np.ndarray, list[np.ndarray]]:
        """Of which batch each row is, and the order of the rows of each batch."""
        sizes = [len(batch) for batch in self.batches]
        ends = np.cumsum(sizes)
        of_batch = np.searchsorted(ends, self.order, side="right")
        begins = enumerate((ends - sizes).tolist())
        return of_batch, [self.order[of_batch == number] - begin for number, begin in begins]


def _back(of_batch: np.ndarray) -> pa.Array:
    """From rows of one batch after the other to the order of all, in which each of them is."""
    return pa.array(np.argsort(np.argsort(of_batch, kind="stable")))


@dataclass(slots=True)
class StagedBatch:
    """Parts of a table in which every field is written in one way, or is rare."""

    parts: list[StagedPart] = field(default_factory=list)
    written: dict[str, StagedField] = field(default_factory=dict)  # by pointer

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def takes(self, part: StagedPart) -> bool:
        """Take one more part, if its fields are written in the same ways."""
        # Most have the very fields of the one before.
        if not self.parts or part.columns is not self.parts[-1].columns:
            written = {field.pointer: field for field in part.columns.head.fields}
            if any(self.written.get(name, how) != how for name, how in written.items()):
                return False
            self.written |= written
        self.parts.append(part)
        return True

    def typed(self, order: np.ndarray, schema: TableSchema) -> TypedRows:
        """The rows of this order in the types of a table."""
        encodings = {pointer: field.encoding for pointer, field in self.written.items()}
        found = gathered(self.parts, encodings, order)
        fields = [(self.written[pointer], array) for pointer, array in found.items()]
        rare = rare_values(self._lists()) if self._has_lists else []
        taken = [values.taken(order, len(self)) for values in rare]
        return typed_rows(StagedRows(len(order), fields, self._rescued(order)), schema, taken)

    def payloads(self, order: np.ndarray) -> pa.Array | None:
        if not any(part.columns.head.payloads for part in self.parts):
            return None
        found = gathered(self.parts, {PAYLOAD: Encoding.TEXT}, order)
        return found.get(PAYLOAD, pa.nulls(len(order), pa.string()))

    def _lists(self) -> Iterator[tuple[pa.RecordBatch, RareNames]]:
        return ((part.batch, part.columns.head.rare) for part in self.parts)

    @property
    def _has_lists(self) -> bool:
        return any(part.columns.head.rare for part in self.parts)

    def _rescued(self, order: np.ndarray) -> pa.Array | None:
        """What staging has rescued, of each row."""
        if not any(part.columns.head.rescued for part in self.parts):
            return None
        nothing = RESCUED_LISTS.type
        every = (
            part.batch[RESCUED] if part.columns.head.rescued else pa.nulls(len(part), nothing)
            for part in self.parts
        )
        return pa.concat_arrays(every).take(pa.array(order))


def _is_in(some: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Which of the numbers are among some that are sorted."""
    if not len(some):
        return np.zeros(len(numbers), np.bool_)
    at = np.minimum(np.searchsorted(some, numbers), len(some) - 1)
    return np.asarray(some[at] == numbers)


def _alike(parts: Iterable[StagedPart]) -> list[StagedBatch]:
    """Parts in as few batches as there can be without a field being written in two ways in one."""
    batches: list[StagedBatch] = []
    for part in parts:
        if not any(batch.takes(part) for batch in batches):
            batches.append(StagedBatch())
            batches[-1].takes(part)
    return batches
