"""The fast reader: parses the plain lines of a block with compiled code."""

import numpy as np

from eventlake.columnar.cells import Cells, Events, new_cells, new_events
from eventlake.columnar.events import read_events
from eventlake.columnar.fields import NONE
from eventlake.columnar.line_blocks import LineBlock
from eventlake.load.cells import CellBlock
from eventlake.load.vocabulary import Vocabulary
from eventlake.settings.models import Limits

_BYTES_PER_CELL = 24  # to begin with: a key and a value


class FastReader:
    """Parses one block after the other."""

    def __init__(self, limits: Limits, vocabulary: Vocabulary) -> None:
        self._limits, self._vocabulary = limits, vocabulary
        self._serial = 0

    def read(self, lines: LineBlock) -> CellBlock:
        """Take apart what is plain among the lines of a block."""
        starts, ends = lines.starts(), lines.ends()
        files, numbers = lines.origins()
        # Cells know their places as 32-bit numbers; only a line of gigabytes is beyond them.
        readable = len(starts) if lines.size < 2**31 else 0
        events, cells = self._events(lines.address, starts, ends, readable)
        names = np.where(events.plain, events.name, 0)
        table = np.where(events.plain, self._vocabulary.tables_of(names), NONE)
        table[ends - starts > self._limits.line_bytes] = NONE
        return CellBlock(lines.memory, starts, ends, files, numbers, table, events, cells)

    def _events(
        self, buf: int, starts: np.ndarray, ends: np.ndarray, readable: int
    ) -> tuple[Events, Cells]:
        size = int(ends[-1] - starts[0]) if len(ends) else 0
        events, cells = new_events(len(starts)), new_cells(size // _BYTES_PER_CELL + 1024)
        words, done = self._vocabulary, 0
        while True:
            done = read_events(
                buf, starts, ends, done, readable, self._limits.depth, words.fields, words.names,
                words.special, words.stamps, cells, events, self._serial,
            )  # fmt: skip
            if done == readable:
                break
            # The line that did not fit is read again, and its fields are new to it once more.
            self._serial += len(starts)
            cells = Cells(*(np.concatenate([part, np.empty_like(part)]) for part in cells))
        self._serial += len(starts)
        return events, cells
