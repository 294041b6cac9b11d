"""What we read of messages, and write of them, held to Arrow."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eventlake.columnar.id_hashes import hash_id
from eventlake.columnar.id_kernel import BLOCK, hash_ids
from eventlake.columnar.memory import address
from eventlake.columnar.messages import body_size, buffers_of, message_form

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
