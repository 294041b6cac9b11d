"""Blocks of lines: raw lines in one buffer, parsed together when the block is full."""

from collections.abc import Iterable

import numpy as np

from eventlake.columnar.memory import address
from eventlake.columnar.raw_lines import BYTE_ORDER_MARK, PIECE
from eventlake.columnar.text import PADDING, find_lines


class LineBlock:
    """Whole lines, and the beginning of an unfinished line.

    A line over the limit is cut to one byte more than the limit: its reader can detect it, and
    memory stays bounded.
    """

    def __init__(self, limit: int, room: int = 0) -> None:
        """`limit` is the longest line; the system allocates `room` only as it is used."""
        self.limit = limit
        self._memory = np.zeros(room + 2 * PIECE + PADDING, np.uint8)  # grows as needed
        self._ends = np.empty(1024, np.int64)
        self._used = 0
        self._count = 0
        self._open = 0  # start of the unfinished line
        self._cut = False  # the unfinished line exceeds the limit: the rest is dropped
        self._runs: list[tuple[int, int, int]] = []  # file, number of its first line here, lines

    @property
    def size(self) -> int:
        """Bytes held."""
        return self._used

    @property
    def count(self) -> int:
        """Whole lines held."""
        return self._count

    @property
    def address(self) -> int:
        return address(self._memory)

    def begin(self, file: int, lines_before: int) -> None:
        """Start a file: the following lines belong to it."""
        self._runs.append((file, lines_before + 1, self._count))

    def add(self, piece: bytes) -> int:
        """Add a part of the file; returns the number of lines that end in it."""
        if self._cut:
            piece = piece[piece.find(b"\n") :] if b"\n" in piece else b""
        if not piece:
            return 0
        self._make_room(len(piece))
        start, self._used = self._used, self._used + len(piece)
        self._memory[start : self._used] = np.frombuffer(piece, np.uint8)
        found = find_lines(self.address, start, self._used, self._ends[self._count :])
        if found > len(self._ends) - self._count:
            self._ends = np.concatenate([self._ends, np.empty(found + len(self._ends), np.int64)])
            find_lines(self.address, start, self._used, self._ends[self._count :])
        if found:
            self._count += found
            self._open = int(self._ends[self._count - 1]) + 1
            self._cut = False
        if self._used - self._open > self.limit + 1:
            self._used = self._open + self.limit + 1
            self._cut = True
        return int(found)

    def end(self, whole: bool) -> int:
        """End the file: an unfinished line counts, unless the file is broken."""
        unfinished = self._used > self._open
        if not whole:
            self._used, self._cut = self._open, False
        elif unfinished:
            self._cut = False
            return self.add(b"\n")
        return 0

    def starts(self) -> np.ndarray:
        found = np.concatenate([[0], self.ends()[:-1] + 1])[: self._count]
        for _, number, first in self._runs:
            if number == 1 and first < self._count:
                start = int(found[first])
                end = min(start + len(BYTE_ORDER_MARK), int(self._ends[first]))
                found[first] += (self.text(start, end) == BYTE_ORDER_MARK) * (end - start)
        return found

    def ends(self) -> np.ndarray:
        return self._ends[: self._count]

    def origins(self) -> tuple[np.ndarray, np.ndarray]:
        """The file and the number of each line."""
        counts = np.diff([first for _, _, first in self._runs] + [self._count])
        files = np.repeat(np.array([file for file, _, _ in self._runs], np.int32), counts)
        pieces: Iterable[np.ndarray] = (
            np.arange(number, number + count, dtype=np.int32)
            for (_, number, _), count in zip(self._runs, counts, strict=True)
        )
        return files, np.concatenate([*pieces, np.empty(0, np.int32)])

    def text(self, start: int, end: int) -> bytes:
        return self._memory[start:end].tobytes()

    @property
    def memory(self) -> np.ndarray:
        return self._memory

    def clear(self) -> None:
        """Remove all whole lines; more of the file may follow."""
        unfinished = self._memory[self._open : self._used].copy()
        if self._runs:
            file, number, first = self._runs[-1]
            self._runs = [(file, number + self._count - first, 0)]
        self._memory[: len(unfinished)] = unfinished
        self._used, self._open, self._count = len(unfinished), 0, 0

    def _make_room(self, more: int) -> None:
        if self._used + more + PADDING > len(self._memory):
            larger = np.zeros(2 * len(self._memory) + more, np.uint8)
            larger[: self._used] = self._memory[: self._used]
            self._memory = larger
