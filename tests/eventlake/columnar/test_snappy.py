""""""

from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventlake.columnar.memory import address
from eventlake.columnar.parquet.snappy import PADDING, TABLE, compress, most_bytes


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
