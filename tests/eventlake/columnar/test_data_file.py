"""Data files: their encodings and codecs."""

from collections.abc import Iterator
from io import BytesIO
from random import Random
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eventlake.columnar.hash_kernels import BLOCK, hash_ids
from eventlake.columnar.id_hashes import hash_id
from eventlake.columnar.memory import address
from eventlake.columnar.messages import body_size, buffers_of, message_form
from eventlake.columnar.parquet.data_file import (
    ROW_GROUP,
    FileEncoding,
    Footer,
    Footers,
    write_data_file,
)
from eventlake.columnar.parquet.snappy import PADDING, TABLE, compress, most_bytes


def written(rows: pa.Table, files: int = 1) -> pq.ParquetFile:
    out = BytesIO()
    write_data_file(out, rows.schema, rows.to_batches(), FileEncoding.of(rows, files))
    return pq.ParquetFile(pa.BufferReader(out.getvalue()))


def ids(count: int) -> list[str]:
    return [str(UUID(int=number * 0x9E3779B97F4A7C15 % 2**128)) for number in range(count)]


def test_what_goes_to_many_files_is_small_in_each() -> None:
    rows = pa.table({"id": ids(1000)})
    assert FileEncoding.of(rows, files=1).various == {"id"}
    assert FileEncoding.of(rows, files=100).various == set()


def test_a_file_says_the_same_to_every_reader() -> None:
    schema = pa.schema(
        [
            ("text", pa.string()),
            ("whole", pa.int64()),
            ("exact", pa.decimal128(38, 6)),
            ("moment", pa.timestamp("us", tz="UTC")),
            ("truth", pa.bool_()),
        ]
    )
    file = written(schema.empty_table())
    assert file.metadata.metadata is None  # nothing of Arrow's own
    assert file.schema_arrow == schema
    assert file.metadata.num_rows == 0


def test_a_long_file_has_groups_of_rows_that_readers_can_skip() -> None:
    rows = pa.table({"number": pa.array(range(ROW_GROUP + 1))})
    groups = written(rows).metadata
    assert [groups.row_group(i).num_rows for i in range(groups.num_row_groups)] == [ROW_GROUP, 1]


class FullDisk(BytesIO):
    def write(self, _: Any) -> int:
        raise OSError(28, "No space left on device")


def test_an_error_of_the_storage_is_told_as_it_is() -> None:
    rows = pa.table({"number": [1]})
    with pytest.raises(OSError, match="No space left") as told:
        write_data_file(FullDisk(), rows.schema, rows.to_batches(), FileEncoding.of(rows))
    assert told.value.errno == 28


def test_so_is_one_of_where_rows_come_from() -> None:
    rows = pa.table({"number": [1]})

    def batches() -> Iterator[pa.RecordBatch]:
        yield from rows.to_batches()
        raise ConnectionError("the network is gone")

    with pytest.raises(ConnectionError, match="the network is gone"):
        write_data_file(BytesIO(), rows.schema, batches(), FileEncoding.of(rows))


class Seen:
    """Says which columns it was shown, and remembers how often it was asked."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, columns: pa.Schema) -> tuple[str, ...]:
        self.times += 1
        return tuple(columns.names)


def file(*columns: str, rows: int) -> bytes:
    out = BytesIO()
    pq.write_table(pa.table({name: pa.array(["x"] * rows, pa.string()) for name in columns}), out)
    return out.getvalue()


@pytest.mark.parametrize("rows", [0, 1, 63, 64, 8191, 8192, 100_000])
def test_files_of_the_same_columns_are_looked_into_once(rows: int) -> None:
    seen = Seen()
    footers = Footers(seen)
    for _ in range(3):
        assert footers.read(file("a", "b", rows=rows), rows) == Footer(rows, ("a", "b"))
    assert footers.read(file("a", "b", rows=7), 7) == Footer(7, ("a", "b"))
    assert seen.times == 1


def test_what_is_not_as_expected_is_told_as_it_is() -> None:
    footers = Footers(Seen())
    assert footers.read(file("a", rows=5), 5) == Footer(5, ("a",))
    assert footers.read(file("a", rows=4), 5) == Footer(4, ("a",))
    assert footers.read(file("b", rows=5), 5) == Footer(5, ("b",))
    assert footers.read(file("a", "b", rows=5), 5) == Footer(5, ("a", "b"))
    assert footers.read(file("a", rows=5), 5) == Footer(5, ("a",))


def test_of_a_file_only_the_end_is_needed() -> None:
    whole = file("a", rows=10_000)
    size = int.from_bytes(whole[-8:-4], "little")
    assert Footers(Seen()).read(whole[-size - 8 :], 10_000) == Footer(10_000, ("a",))
    assert Footers(Seen()).read(whole[-size - 7 :], 10_000) is None


def test_what_is_no_file_is_refused() -> None:
    with pytest.raises(pa.ArrowInvalid):
        Footers(Seen()).read(b"PAR1" + bytes(100) + b"PAR0", 5)


TYPES = [pa.string(), pa.int64(), pa.bool_(), pa.binary(16), pa.list_(pa.string())]


@pytest.mark.parametrize("count", [1, 2, 5])
def test_buffers_are_where_arrow_has_them(count: int) -> None:
    arrays = [pa.nulls(3, type) for type in TYPES[:count]]
    message = pa.RecordBatch.from_arrays(arrays, [type.id.__str__() for type in TYPES[:count]])
    written = message.serialize()
    read = pa.ipc.read_record_batch(written, message.schema)
    buffers = [buffer for column in read.columns for buffer in column.buffers()]
    found = buffers_of(written)
    assert len(found) == len(buffers)
    for (start, size), buffer in zip(found.tolist(), buffers, strict=True):
        if buffer is not None and buffer.size:
            assert (start, size) == (buffer.address, buffer.size)
    assert body_size(written) == sum(-(-size // 8) * 8 for _, size in found.tolist())


@pytest.mark.parametrize(("texts", "others"), [(0, 1), (1, 0), (3, 2), (40, 25)])
def test_a_form_has_the_places_of_what_differs(texts: int, others: int) -> None:
    form = message_form(texts, others)
    assert form.numbers[form.rows] == 1
    assert form.numbers[form.body] == 8 * (2 * texts + others)
    columns = form.numbers[form.columns :][: 2 * (texts + others)].reshape(-1, 2)
    assert np.all(columns == [1, 0])
    sizes = form.numbers[form.buffers :][1 : 2 * (3 * texts + 2 * others) : 2].tolist()
    assert sizes == [0, 8, 1] * texts + [0, 8] * others


IDS = st.text(max_size=BLOCK).filter(lambda text: len(text.encode()) <= BLOCK)


@given(st.lists(IDS, min_size=1))
@example(["", "m", "a" * BLOCK, "ajs-next-1790863199160-ff0e9337-c14a-46a6-a455-993f5a128862"])
def test_ids_are_hashed_as_the_library_does(ids: list[str]) -> None:
    texts = [text.encode() for text in ids]
    memory = np.frombuffer(b"".join(texts) + b"\0", np.uint8).copy()
    ends = np.cumsum([len(text) for text in texts], dtype=np.int32)
    starts = ends - np.array([len(text) for text in texts], np.int32)
    hashes = np.empty((len(ids), 2), np.uint64)
    hash_ids(address(memory), starts, ends, hashes)
    assert [row.tobytes() for row in hashes] == [hash_id(text) for text in ids]


def compressed(text: bytes) -> bytes:
    source = np.frombuffer(text + bytes(PADDING), np.uint8)
    out = np.zeros(most_bytes(len(text)), np.uint8)
    room = np.full(TABLE, 0xFFFF, np.uint16)  # whatever another text has left there
    size = compress(address(source), len(text), address(out), 0, room)
    assert size <= len(out)
    return out[:size].tobytes()


def unpacked(data: bytes, size: int) -> bytes:
    text: bytes = pa.Codec("snappy").decompress(data, decompressed_size=size, asbytes=True)
    return text


@settings(deadline=None)
@given(
    st.binary(max_size=2_000)
    | st.text("ab", max_size=2_000).map(str.encode)
    | st.lists(st.sampled_from([b"https://example.com/", b"\0" * 70, b"x", b"yz" * 30])).map(
        b"".join
    )
)
def test_the_library_reads_what_we_write(text: bytes) -> None:
    assert unpacked(compressed(text), len(text)) == text


@pytest.mark.parametrize("size", [65_535, 65_536, 65_537, 200_000])
def test_so_it_does_with_long_texts(size: int) -> None:
    for text in (bytes(size), Random(7).randbytes(size), (b"one two three " * size)[:size]):
        assert unpacked(compressed(text), size) == text


def test_what_repeats_is_told_shortly() -> None:
    text = b"".join(b"https://example.com/products/%d\n" % number for number in range(200))
    library = pa.Codec("snappy").compress(text, asbytes=True)
    assert len(compressed(text)) < 1.1 * len(library)
    noise = Random(7).randbytes(10_000)
    assert len(compressed(noise)) < 1.01 * len(noise)
