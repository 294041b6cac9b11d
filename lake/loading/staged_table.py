"""Staged rows of one table, of any number of partitions, made ready to be written together."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa

from lake.counts import add_casts
from lake.loading.typed_rows import TypedRows, typed_rows
from lake.schema import TableSchema
from lake.staging.blob import Blob, from_ipc
from lake.staging.places import places
from lake.staging.rows_blob import FILE, ID, LINE, PAYLOAD, RECEIVED

_ORIGINS = (RECEIVED, FILE, LINE, ID, PAYLOAD)


@dataclass(frozen=True, slots=True)
class StagedTable:
    """Rows without their duplicates. Casting a little costs as much as casting some more, so that
    blobs which say how their values are written in the same way are cast as one."""

    blobs: Sequence[pa.Table]
    origins: pa.Table  # where each row is from, in the order of the files to be written
    order: np.ndarray  # the rows of all blobs in this order: by partition, then as received
    slices: dict[str, slice]  # which of the ordered rows belong to which key of staged rows

    @classmethod
    def of(cls, blobs: Iterable[Blob], duplicates: np.ndarray) -> "StagedTable | None":
        """The rows that are kept, if there are any."""
        kept = [(blob.key, _without(duplicates, from_ipc(blob.data))) for blob in blobs]
        batches = _alike([(key, rows) for key, rows in kept if len(rows)])
        if not batches:
            return None
        in_order = [part for batch in batches for part in batch]
        keys = sorted({key for key, _ in in_order})
        code = {key: number for number, key in enumerate(keys)}
        codes = np.repeat([code[key] for key, _ in in_order], [len(rows) for _, rows in in_order])
        origins = pa.concat_tables(
            rows.select([name for name in _ORIGINS if name in rows.column_names])
            for _, rows in in_order
        )
        order = np.lexsort([*(origins[at].to_numpy() for at in (LINE, FILE, RECEIVED)), codes])
        ends = np.searchsorted(codes[order], np.arange(len(keys) + 1)).tolist()
        return cls(
            [_joined([rows for _, rows in batch]) for batch in batches],
            origins.take(pa.array(order)),
            order,
            {key: slice(ends[number], ends[number + 1]) for key, number in code.items()},
        )

    def typed(self, schema: TableSchema) -> TypedRows:
        """All rows in the types of a table, in the order of the files to be written."""
        typed = [typed_rows(blob, schema) for blob in self.blobs]
        rows = pa.concat_tables((part.rows for part in typed), promote_options="default")
        return TypedRows(
            rows.take(pa.array(self.order)),
            reduce(add_casts, (part.casts for part in typed)),
            sum(part.rescued_cells for part in typed),
        )


def _without(duplicates: np.ndarray, staged: pa.Table) -> pa.Table:
    at = places(staged[FILE].to_numpy(), staged[LINE].to_numpy())
    drop = np.isin(at, duplicates, assume_unique=True)
    return staged.filter(pa.array(~drop)) if drop.any() else staged


def _alike(parts: Iterable[tuple[str, pa.Table]]) -> list[list[tuple[str, pa.Table]]]:
    """Parts in as few batches as there can be without a field being written in two ways in one."""
    batches: list[tuple[dict[str, bytes], list[tuple[str, pa.Table]]]] = []
    for key, rows in parts:
        written = {f.name: f.metadata[b"as"] for f in rows.schema if f.metadata is not None}
        for known, batch in batches:
            if all(known.get(name, how) == how for name, how in written.items()):
                known.update(written)
                batch.append((key, rows))
                break
        else:
            batches.append((written, [(key, rows)]))
    return [batch for _, batch in batches]


def _joined(parts: Sequence[pa.Table]) -> pa.Table:
    return parts[0] if len(parts) == 1 else pa.concat_tables(parts, promote_options="default")
