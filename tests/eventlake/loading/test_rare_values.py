"""Rare values of several batches, each with numbers of its own for the same fields."""

import numpy as np
import pyarrow as pa

from eventlake.columnar.kinds import Encoding
from eventlake.load.blobs import RareName
from eventlake.load.typed_rows import RareNames, rare_values

EACH = pa.list_(pa.struct([("field", pa.uint16()), ("value", pa.int64())]))


def part(
    names: dict[int, str], rows: list[dict[int, int] | None]
) -> tuple[pa.RecordBatch, RareNames]:
    """Rows with the values of some fields by number; None: the row comes without a list."""
    lists = [
        None if row is None else [{"field": n, "value": v} for n, v in row.items()] for row in rows
    ]
    told = [RareName(number, f"/{name}", name) for number, name in names.items()]
    batch = pa.RecordBatch.from_arrays([pa.array(lists, EACH)], ["#rare-int"])
    return batch, {Encoding.INT: told}


def test_each_field_has_its_values_in_the_order_asked_for() -> None:
    one = part({5: "a", 9: "b"}, [{5: 1}, {5: 2, 9: 3}, None])
    two = part({5: "b", 0: "c"}, [{5: 4}, {}, {0: 5, 5: 6}])
    [values] = rare_values([one, two])
    taken = values.taken(np.array([5, 3, 1]), rows=6)  # without the first row, which has an "a"
    found = {
        name.column: dict(zip(sparse.rows.tolist(), sparse.values.to_pylist(), strict=True))
        for name, sparse in taken.fields()
    }
    assert found == {"a": {2: 2}, "b": {0: 6, 1: 4, 2: 3}, "c": {0: 5}}


def test_batches_without_rare_fields_have_none() -> None:
    assert rare_values([(pa.RecordBatch.from_pydict({"#line": [1]}), {})]) == []


def test_where_no_row_with_a_rare_field_is_left_there_is_no_field() -> None:
    [values] = rare_values([part({5: "a"}, [{5: 1}, {}])])
    assert list(values.taken(np.array([1]), rows=2).fields()) == []
