import pyarrow as pa
import pytest

from lake.staging.blob import Blob, BlobKind, message_packer, unpacked_batch
from lake.staging.rows_blob import divided, joint_key, parts_of, rows_key, table_of

SEVEN, EIGHT = "day=2026-10-01/hr=07", "day=2026-10-01/hr=08"


def blob(key: str, *numbers: int) -> Blob:
    batch = pa.RecordBatch.from_pydict({"number": numbers})
    data = message_packer(batch.schema)(batch.serialize())
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
    assert [unpacked_batch(part.data)["number"].to_pylist() for part in parts] == [[1, 2], [3]]


@pytest.mark.parametrize("metadata", [{"as": "text"}, {"as": "json"}])
def test_what_is_said_of_columns_comes_with_the_batch(metadata: dict[str, str]) -> None:
    schema = pa.schema([pa.field("/a", pa.string(), metadata=metadata)])
    batch = pa.RecordBatch.from_pydict({"/a": ["x", None]}, schema=schema)
    data = message_packer(schema)(batch.serialize())
    assert unpacked_batch(data).equals(batch, check_metadata=True)
