""""""

import pyarrow as pa

from eventlake.columnar.kinds import Encoding
from eventlake.load.blobs import (
    ORIGINS,
    Blob,
    BlobKind,
    RareName,
    StagedField,
    StagedHead,
    divided,
    joint_key,
    packed_message,
    parts_of,
    rows_key,
    rows_of,
    table_of,
)

SEVEN, EIGHT = "day=2026-10-01/hr=07", "day=2026-10-01/hr=08"


def blob(key: str, *numbers: int) -> Blob:
    head = StagedHead(False, False, [StagedField("/number", "number", Encoding.INT)], {})
    rows = pa.RecordBatch.from_pylist([{"/number": number} for number in numbers], head.schema())
    data = packed_message(head.encode(), rows.serialize())
    return Blob(BlobKind.ROWS, key, 3, len(numbers), data)


def test_a_blob_of_one_partition_stays_as_it_is() -> None:
    one = blob(rows_key("page", SEVEN), 1, 2)
    assert (table_of(one), parts_of(one)) == ("page", {one.key: 2})
    assert divided(one) == [one]


def test_a_blob_of_several_says_what_it_has_of_each_and_can_be_divided() -> None:
    joint = blob(joint_key("page", {SEVEN: 2, EIGHT: 1}), 1, 2, 3)
    seven, eight = rows_key("page", SEVEN), rows_key("page", EIGHT)
    assert (table_of(joint), parts_of(joint)) == ("page", {seven: 2, eight: 1})
    parts = divided(joint)
    assert [(part.key, part.task, part.rows) for part in parts] == [(seven, 3, 2), (eight, 3, 1)]
    assert [rows_of(part)[1]["/number"].to_pylist() for part in parts] == [[1, 2], [3]]


def test_what_is_said_of_columns_comes_with_the_rows() -> None:
    rare = {Encoding.INT: [RareName(7, "/n", "n")]}
    head = StagedHead(True, True, [StagedField("/a", "a", Encoding.MILLIS)], rare)
    assert head.schema().names == [*ORIGINS.names, "#payload", "#rescued", "/a", "#rare-int"]
    assert head.schema().field("/a").type == pa.timestamp("us", tz="UTC")
    batch = pa.RecordBatch.from_pylist([{"#line": 3, "#rescued": ["x"]}], head.schema())
    data = packed_message(head.encode(), batch.serialize())
    assert rows_of(Blob(BlobKind.ROWS, "page\nhr=07", 0, 1, data)) == (head, batch)
