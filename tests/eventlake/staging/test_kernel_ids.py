import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from eventlake.columnar.id_hashes import hash_id
from eventlake.columnar.id_kernel import BLOCK, hash_ids
from eventlake.columnar.memory import address

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
