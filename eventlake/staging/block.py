"""A block of lines, with what the kernel has found in them."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eventlake.columnar.events import ID, Cells, Events
from eventlake.columnar.id_hashes import ID_BYTES, hash_id
from eventlake.columnar.id_kernel import BLOCK, hash_ids
from eventlake.columnar.line_blocks import LineBlock
from eventlake.columnar.values import ESCAPED, MILLIS
from eventlake.staging.parts import Origins


@dataclass(slots=True)
class Block:
    """The lines of a block; `table` is a number of `PlainEvents.tables`, NONE of odd lines."""

    lines: LineBlock
    starts: np.ndarray
    ends: np.ndarray
    files: np.ndarray
    numbers: np.ndarray
    table: np.ndarray
    events: Events
    cells: Cells

    def line(self, row: int) -> bytes:
        return self.lines.text(int(self.starts[row]), int(self.ends[row]))

    def texts(self, cells: np.ndarray) -> list[str | None]:
        """What stands in some cells, None where it is not plain text."""
        view = self.lines.view()
        kinds = self.cells.kind[cells]
        plain = ((kinds <= MILLIS) & (kinds != ESCAPED)).tolist()
        starts, ends = self.cells.start[cells].tolist(), self.cells.end[cells].tolist()
        return [
            str(view[start:end], "utf-8") if is_text else None
            for is_text, start, end in zip(plain, starts, ends, strict=True)
        ]

    def origins(self, rows: np.ndarray, keep_payloads: bool) -> pa.RecordBatch:
        """Where some rows are from."""
        return Origins(
            self.files[rows],
            self.numbers[rows],
            self.ids(rows),
            self.events.received[rows],
            self.events.payload[rows],
            [self.line(row) for row in rows.tolist()] if keep_payloads else None,
        ).batch()

    def ids(self, rows: np.ndarray) -> pa.Array:
        """The hashed message ids of some rows."""
        cells = self.events.envelope[rows, ID]
        starts, ends = self.cells.start[cells], self.cells.end[cells]
        hashes = np.empty((len(rows), 2), np.uint64)
        hash_ids(self.lines.address, starts, np.minimum(ends, starts + BLOCK), hashes)
        for row in np.flatnonzero(ends - starts > BLOCK).tolist():
            text = self.lines.text(int(starts[row]), int(ends[row])).decode()
            hashes[row] = np.frombuffer(hash_id(text), np.uint64)
        return pa.Array.from_buffers(
            pa.binary(ID_BYTES), len(rows), [None, pa.py_buffer(hashes)], 0
        )
