"""Compiled hashes: message ids (BLAKE2b) and payloads."""

from typing import Any

import numpy as np

from eventlake.columnar.compiled import compiled, inlined
from eventlake.columnar.fields import ROOT_PATH
from eventlake.columnar.id_hashes import ID_BYTES
from eventlake.columnar.memory import byte
from eventlake.columnar.text import hashed, mixed, unescaped
from eventlake.columnar.values import ESCAPED, LOOSE_ARRAY, NUMBER, TEXT, is_verbatim, tight

_TEXT, _OTHER = np.uint64(0x7E47), np.uint64(0x07E2)


@compiled
def value_hash(buf: int, kind: int, start: int, end: int, scratch: int) -> Any:
    """64 bits from one value."""
    if is_verbatim(kind):
        return hashed(buf, start, end, _TEXT)
    if kind == ESCAPED:
        return hashed(scratch, 0, unescaped(buf, start, end, scratch, 0), _TEXT)
    if kind == LOOSE_ARRAY:
        return hashed(scratch, 0, tight(buf, start, end, scratch, 0), _OTHER)
    return hashed(buf, start, end, _OTHER)


@compiled
def path_hash(buf: int, ends: np.ndarray) -> Any:
    """The hash of a path whose keys stand one after the other, as its field has it."""
    path = ROOT_PATH
    for key in range(len(ends) - 1):
        path = hashed(buf, ends[key], ends[key + 1], path)
    return path


@compiled
def payload_of(buf: int, ends: np.ndarray, is_text: np.ndarray, paths: np.ndarray) -> Any:
    """The hash of an event whose values stand one after the other."""
    total = np.uint64(0)
    for cell in range(len(paths)):
        kind = TEXT if is_text[cell] else NUMBER
        total += mixed(value_hash(buf, kind, ends[cell], ends[cell + 1], buf) ^ paths[cell])
    return folded(total)


@inlined
def folded(total: Any) -> Any:
    """32 bits from the sum of all values of an event, each mixed with its path; never 0."""
    half = np.uint32((total ^ (total >> np.uint64(32))) & np.uint64(0xFFFFFFFF))
    return half if half != 0 else np.uint32(1)


BLOCK = 128
"""Bytes of a block."""
_ROUNDS = 12
_START = np.array(
    [
        *(0x6A09E667F3BCC908, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1),
        *(0x510E527FADE682D1, 0x9B05688C2B3E6C1F, 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179),
    ],
    np.uint64,
)
_FIRST = _START[0] ^ np.uint64(0x01010000 | ID_BYTES)  # no key, no tree
_WORDS = np.array(
    [
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
        [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
        [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
        [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
        [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
        [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
        [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
        [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
        [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
    ],
    np.uint8,
)
"""Which words of the block each round mixes in, in which order."""


@inlined
def _turned(word: Any, bits: int) -> Any:
    return word >> np.uint64(bits) | word << np.uint64(64 - bits)


@inlined
def _mixed(a: Any, b: Any, c: Any, d: Any, x: Any, y: Any) -> Any:
    a = a + b + x
    d = _turned(d ^ a, 32)
    c = c + d
    b = _turned(b ^ c, 24)
    a = a + b + y
    d = _turned(d ^ a, 16)
    c = c + d
    b = _turned(b ^ c, 63)
    return a, b, c, d


@compiled
def hash_ids(buf: int, starts: np.ndarray, ends: np.ndarray, hashes: np.ndarray) -> None:
    """The hash of each text, as two words; none is longer than a block."""
    block = np.zeros(BLOCK // 8, np.uint64)
    for text in range(len(starts)):
        start, size = starts[text], ends[text] - starts[text]
        block[:] = 0
        for i in range(size):
            block[i >> 3] |= np.uint64(byte(buf, start + i)) << np.uint64(8 * (i & 7))
        v0, v1, v2, v3 = _FIRST, _START[1], _START[2], _START[3]
        v4, v5, v6, v7 = _START[4], _START[5], _START[6], _START[7]
        v8, v9, v10, v11 = _START[0], _START[1], _START[2], _START[3]
        v12, v13, v14, v15 = _START[4] ^ np.uint64(size), _START[5], ~_START[6], _START[7]
        for number in range(_ROUNDS):
            w = _WORDS[number % len(_WORDS)]
            v0, v4, v8, v12 = _mixed(v0, v4, v8, v12, block[w[0]], block[w[1]])
            v1, v5, v9, v13 = _mixed(v1, v5, v9, v13, block[w[2]], block[w[3]])
            v2, v6, v10, v14 = _mixed(v2, v6, v10, v14, block[w[4]], block[w[5]])
            v3, v7, v11, v15 = _mixed(v3, v7, v11, v15, block[w[6]], block[w[7]])
            v0, v5, v10, v15 = _mixed(v0, v5, v10, v15, block[w[8]], block[w[9]])
            v1, v6, v11, v12 = _mixed(v1, v6, v11, v12, block[w[10]], block[w[11]])
            v2, v7, v8, v13 = _mixed(v2, v7, v8, v13, block[w[12]], block[w[13]])
            v3, v4, v9, v14 = _mixed(v3, v4, v9, v14, block[w[14]], block[w[15]])
        hashes[text, 0] = _FIRST ^ v0 ^ v8
        hashes[text, 1] = _START[1] ^ v1 ^ v9
