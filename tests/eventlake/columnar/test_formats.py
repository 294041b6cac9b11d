"""Codecs and encodings of data files."""

from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eventlake.columnar.id_hashes import hash_id
from eventlake.columnar.id_kernel import BLOCK, hash_ids
from eventlake.columnar.memory import address
from eventlake.columnar.messages import body_size, buffers_of, message_form
from eventlake.columnar.parquet.snappy import PADDING, TABLE, compress, most_bytes

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
