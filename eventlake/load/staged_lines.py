"""Staged lines: raw lines in compressed chunks, from which the record log reads what is not loaded.

Duplicates are known only after all files are read, so every line is kept until then. The chunks are
smaller than the gzip files, and cheaper than reading these again.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from eventlake.load.blobs import Blob, BlobKind, packed, unpacked
from eventlake.load.record_log import NotLoaded
from eventlake.load.seen import positions, split_positions

if TYPE_CHECKING:  # compiled code, which only workers need
    from eventlake.load.cells import CellBlock

CHUNK = 1 << 20
"""Bytes of lines in a chunk, which is unpacked as a whole; a longer line has a chunk of its own."""
_PACKING = pa.Codec("zstd", compression_level=1)  # similar lines compress to a ninth
_OF_A_LINE = ("files", "numbers", "starts", "ends")


def line_chunks(block: "CellBlock", kept: np.ndarray, task: int) -> Iterator[Blob]:
    """The lines of the rows of a block that are kept."""
    size = int(block.ends[-1]) if len(block.ends) else 0
    edges = np.searchsorted(block.ends, np.arange(CHUNK, size, CHUNK)).tolist()
    for first, after in pairwise(sorted({0, *edges, len(block.ends)})):
        rows = np.flatnonzero(kept[first:after]) + first
        if not len(rows):
            continue
        start, end = int(block.starts[rows[0]]), int(block.ends[rows[-1]])
        lines = np.array([getattr(block, name)[rows] for name in _OF_A_LINE], np.int64)
        lines[2:] -= start
        # Differences are small and repetitive.
        head = np.append(len(rows), np.diff(lines, axis=1, prepend=0))
        data = packed(pa.py_buffer(head.tobytes() + block.memory[start:end].data), _PACKING)
        key = str(positions(*lines[:2, :1]).item())
        yield Blob(BlobKind.LINES, key, task, len(rows), data)


class StagedLines:
    """The lines of a chunk by position; possibly none."""

    def __init__(self, blobs: Iterable[Blob]) -> None:  # at most one
        self._positions = np.empty(0, np.uint64)
        for blob in blobs:
            data = memoryview(unpacked(blob.data, _PACKING))
            (rows,) = np.frombuffer(data, np.int64, 1).tolist()
            lines = np.cumsum(np.frombuffer(data, np.int64, 4 * rows, 8).reshape(4, rows), axis=1)
            self._positions, self._places = positions(lines[0], lines[1]), lines[2:]
            self._text = data[8 * (4 * rows + 1) :]

    def line(self, position: int) -> bytes | None:
        """The line at a position; None if the file could not be read that far."""
        at = int(np.searchsorted(self._positions, np.uint64(position)))
        if at == len(self._positions) or self._positions[at] != position:
            return None
        start, end = self._places[:, at].tolist()
        return bytes(self._text[start:end])


def by_chunk(
    rows: NotLoaded, chunks: Iterable[Blob], task_of: Mapping[int, int]
) -> list[tuple[Sequence[Blob], NotLoaded]]:
    """Rows with the chunk of their lines; rows before the first line of a task have none."""
    of_task: dict[int, list[Blob]] = {}
    for blob in sorted(chunks, key=lambda blob: int(blob.key)):
        of_task.setdefault(blob.task, []).append(blob)
    tasks = np.array([task_of[file] for file in split_positions(rows.positions)[0].tolist()])
    found: list[tuple[Sequence[Blob], NotLoaded]] = []
    for task in np.unique(tasks).tolist():
        mine, blobs = rows.where(tasks == task), of_task.get(task, [])
        first = np.array([int(blob.key) for blob in blobs], np.uint64)
        chunk = np.searchsorted(first, mine.positions, side="right") - 1
        for number in np.unique(chunk).tolist():
            needed = blobs[number : number + 1] if number >= 0 else ()
            found.append((needed, mine.where(chunk == number)))
    return found
