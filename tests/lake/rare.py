"""Rare fields where there are few rows."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lake.casting.encoding import Encoding, decoded
from lake.loading.rare_values import without_lists
from lake.staging.kernel import layout


def all_are_rare(patch: pytest.MonkeyPatch) -> None:
    """Have every field in lists that can be there."""
    patch.setattr(layout, "FEW", 1)
    patch.setattr(layout, "MANY", 1)


def values_of(staged: pa.Table) -> dict[str, Any]:
    """What staged rows hold, however it is written: by name and, of fields, column."""
    [rows], rare = without_lists(staged.combine_chunks().to_batches())
    found: dict[Any, dict[int, Any]] = {}
    for field, array in zip(rows.schema, rows.columns, strict=True):
        values = dict(enumerate(array.to_pylist()))
        name: Any = field.name
        if field.metadata:
            name = field.name, field.metadata[b"column"].decode()
            present = np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False)).tolist()
            encoding = Encoding(field.metadata[b"as"].decode())
            values = dict(zip(present, decoded(encoding, array.drop_null()), strict=True))
        found[name] = values
    for listed in rare:
        for rare_name, sparse in listed.taken(np.arange(len(rows)), len(rows)).fields():
            values = dict(
                zip(sparse.rows.tolist(), decoded(listed.encoding, sparse.values), strict=True)
            )
            before = found.setdefault((rare_name.pointer, rare_name.column), {})
            assert before.keys().isdisjoint(values)
            before |= values
    order = sorted(range(len(rows)), key=lambda row: (found["#file"][row], found["#line"][row]))
    return {
        str(name): [values.get(row) for row in order]
        for name, values in sorted(found.items(), key=str)
    }
