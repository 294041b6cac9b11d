"""The hash of the payload of an event, independent of the order of its keys."""

from typing import Any

import numpy as np

from eventlake.columnar.compiled import compiled, inlined
from eventlake.columnar.fields import ROOT_PATH
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
