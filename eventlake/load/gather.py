"""Joins the columns of several parts in row order, all at once, with compiled code."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from eventlake.columnar.gather import AS_BIT, AS_TEXT, AS_WORD, TEXTS, VALID, VALUES, gather
from eventlake.columnar.kinds import ARROW_TYPES, Encoding
from eventlake.columnar.layout import aligned
from eventlake.load.staged_part import StagedPart

_WAYS = {
    Encoding.TEXT: AS_TEXT,
    Encoding.NUMBER: AS_TEXT,
    Encoding.JSON: AS_TEXT,
    Encoding.INT: AS_WORD,
    Encoding.MILLIS: AS_WORD,
    Encoding.BOOL: AS_BIT,
}
_SPARE = 8  # bytes that the kernel may write after bits
_MOST = 2**31 - 1


def gathered_by_kernel(
    parts: Sequence[StagedPart], columns: Mapping[str, Encoding], order: np.ndarray
) -> dict[str, pa.Array]:
    names, ways = list(columns), np.array([_WAYS[e] for e in columns.values()], np.int64)
    is_text = ways == AS_TEXT
    sources, texts = _sources(parts, names)
    texts[~is_text] = 0
    if np.max(texts, initial=0) > _MOST:
        raise OverflowError(
            f"{names[int(np.argmax(texts))]} has more than 2 GB of text in one file. Hours are "
            "divided by raw file: put these events into several of them."
        )
    rows = len(order)
    bits = (rows + 7) // 8 + _SPARE
    fixed = np.where(is_text, 4 * (rows + 1), np.where(ways == AS_BIT, bits, 8 * rows))
    sizes = np.column_stack([np.full(len(names), bits), fixed, texts])
    room = aligned(sizes)
    starts = (np.cumsum(room) - room.ravel()).reshape(room.shape)
    memory = pa.allocate_buffer(int(np.sum(room)))
    told = np.zeros((len(names), 2), np.int64)
    gather(_runs(parts, order), sources, ways, starts + memory.address, rows, told)
    found: dict[str, pa.Array] = {}
    for (name, encoding), (valid, values, text), size, (filled, length) in zip(
        columns.items(), starts.tolist(), fixed.tolist(), told.tolist(), strict=True
    ):
        if filled:
            mask = memory.slice(valid, bits) if filled < rows else None
            buffers = [mask, memory.slice(values, size)]
            if _WAYS[encoding] == AS_TEXT:
                buffers.append(memory.slice(text, length))
            type = ARROW_TYPES[encoding]
            found[name] = pa.Array.from_buffers(type, rows, buffers, rows - filled)
    return found


def _sources(parts: Sequence[StagedPart], names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """The addresses of all buffers by column and part, and the bytes of texts by column."""
    found = [[part.columns.buffers.get(name, -1) for name in names] for part in parts]
    first = np.array(found, np.int64)  # there may be no names
    counts = [len(part.buffers) for part in parts]
    before = np.cumsum(counts) - counts
    # Columns without texts may be the last; what is found in place of these is not looked at.
    buffers = np.concatenate([*(part.buffers for part in parts), _NO_BUFFERS])
    at = (first + before[:, None])[:, :, None] + [VALID, VALUES, TEXTS]
    addresses, sizes = buffers[at, 0], buffers[at, 1]
    addresses[sizes[:, :, VALID] == 0, VALID] = 0  # all rows have a value
    missing = first < 0
    addresses[missing] = 0
    sizes[missing] = 0
    return np.ascontiguousarray(addresses.swapaxes(0, 1)), np.sum(sizes[:, :, TEXTS], axis=0)


_NO_BUFFERS = np.zeros((1, 2), np.int64)


def _runs(parts: Sequence[StagedPart], order: np.ndarray) -> np.ndarray:
    """Rows that follow each other in their part, as the kernel wants them."""
    ends = np.cumsum([len(part) for part in parts])
    part = np.searchsorted(ends, order, side="right")
    goes_on = (order[1:] == order[:-1] + 1) & (part[1:] == part[:-1])
    begin = np.concatenate([[0], np.flatnonzero(~goes_on) + 1]) if len(order) else order
    first = order[begin] - (ends - [len(part) for part in parts])[part[begin]]
    return np.column_stack([part[begin], first, np.diff(begin, append=len(order))])


def warm_up() -> None:
    """Have the code of the kernel ready: from its cache or, the first time, by compiling it."""
    none = np.empty((0, 3), np.int64)
    gather(none, none.reshape(0, 0, 3), none[:, 0].copy(), none, 0, none[:, :2].copy())
