"""Rare fields where there are few rows."""

from typing import Any

import numpy as np
import pytest

from eventlake.columnar import layout
from eventlake.load.blobs import RARE, Blob, rows_of
from eventlake.load.encoding import decoded
from eventlake.load.typed_rows import rare_values


def all_are_rare(patch: pytest.MonkeyPatch) -> None:
    """Have every field in lists that can be there."""
    patch.setattr(layout, "FEW", 1)
    patch.setattr(layout, "MANY", 1)


def values_of(staged: Blob) -> dict[str, Any]:
    """What staged rows hold, however it is written: by name and, of fields, column."""
    head, batch = rows_of(staged)
    rare = rare_values([(batch, head.rare)])
    rows = batch.drop_columns([name for name in batch.schema.names if name.startswith(RARE)])
    found: dict[Any, dict[int, Any]] = {}
    fields = {field.pointer: field for field in head.fields}
    for name, array in zip(rows.schema.names, rows.columns, strict=True):
        if name not in fields:
            found[name] = dict(enumerate(array.to_pylist()))
            continue
        field = fields[name]
        present = np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False)).tolist()
        values = decoded(field.encoding, array.drop_null())
        found[name, field.column] = dict(zip(present, values, strict=True))
    for listed in rare:
        for rare_name, sparse in listed.taken(np.arange(len(rows)), len(rows)).fields():
            values = decoded(listed.encoding, sparse.values)
            before = found.setdefault((rare_name.pointer, rare_name.column), {})
            assert before.keys().isdisjoint(sparse.rows.tolist())
            before |= dict(zip(sparse.rows.tolist(), values, strict=True))
    order = sorted(range(len(rows)), key=lambda row: (found["#file"][row], found["#line"][row]))
    # A field without a value in these rows may be an empty column or none at all.
    return {
        str(name): [values.get(row) for row in order]
        for name, values in sorted(found.items(), key=str)
        if any(value is not None for value in values.values())
    }
