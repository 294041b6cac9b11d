"""Lines that are staged by one task, and the batches that come of them, cell by cell."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from eventlake.columnar.batches import FIELD_SHIFT, IS_TEXT, LONG, LOST
from eventlake.load.blobs import Blob, BlobKind
from eventlake.load.seen import Seen, SeenTable
from eventlake.load.stage import stage
from eventlake.load.stage_job import RawFile, StageJob
from eventlake.load.staged import StagedBatch
from eventlake.rules.names import Naming
from eventlake.rules.parse import parse_value
from eventlake.rules.partitions import DatePartition
from eventlake.settings.models import Limits
from eventlake.storage import LocalStorage
from tests.support.lakes.archive import Archive, Line, as_line


class Staged:
    """The blobs of one task over files made of lines."""

    def __init__(self, root: Path, *files: Sequence[Line], **job: Any) -> None:
        day = Archive(root).day("2026-10-01")
        raw = []
        for number, lines in enumerate(files):
            path = day.raw(f"{number}.json", b"".join(as_line(line) + b"\n" for line in lines))
            raw.append(RawFile(number, str(path.relative_to(root)), 0, ""))
        settings: dict[str, Any] = {
            "storage": LocalStorage(str(root)),
            "naming": Naming.NATIVE,
            "date_partition": DatePartition.DAY_HOUR,
            "limits": Limits(),
            "columns": {},
        }
        self.blobs = list(stage(StageJob(**settings | job), 0, raw))
        self.seen = Seen.decode(self.blobs[-1].data)

    def of(self, kind: BlobKind) -> list[Blob]:
        return [blob for blob in self.blobs if blob.kind == kind]

    def rows(self) -> list["StagedRow"]:
        """All rows, in order of arrival."""
        found = [row for blob in self.of(BlobKind.ROWS) for row in rows_of(blob)]
        return sorted(found, key=lambda row: (row.file, row.line))

    def table(self, name: str) -> SeenTable:
        [seen] = [seen for seen in self.seen.tables if seen.table == name]
        return seen

    def columns(self, table: str) -> list[tuple[str, str]]:
        """Columns and pointers, in order of discovery."""
        found = sorted(self.table(table).columns, key=lambda column: column.first)
        return [(column.column, column.pointer) for column in found]


@dataclass(frozen=True, slots=True)
class StagedRow:
    """A row of a batch: values by pointer, as they were parsed; columns of those that have one."""

    file: int
    line: int
    received: int
    id: bytes
    values: dict[str, Any]
    columns: dict[str, str]
    lost: list[str]  # pointers, in order


def rows_of(blob: Blob) -> list[StagedRow]:
    """The layout in `columnar/batches.py`, read in the plainest way."""
    batch, body = StagedBatch(blob), memoryview(StagedBatch(blob).body)
    codes = np.frombuffer(body, np.uint32, int(batch.cells.sum()), batch._codes)
    lengths = np.frombuffer(body, np.uint8, len(codes), batch._lengths)
    at, cell, found = batch._values, 0, []
    for row in range(len(batch)):
        values: dict[str, Any] = {}
        columns: dict[str, str] = {}
        lost, begin = [], at
        for code, size in zip(
            codes[cell : cell + batch.cells[row]].tolist(),
            lengths[cell : cell + batch.cells[row]].tolist(),
            strict=True,
        ):
            if size == LONG:
                size = int.from_bytes(body[at : at + 4], "little")
                at += 4
            text = bytes(body[at : at + size]).decode()
            at += size
            pointer, column = batch.fields[code >> FIELD_SHIFT]
            assert pointer not in values
            values[pointer] = text if code & IS_TEXT else parse_value(text)
            if code & LOST:
                lost.append(pointer)
            else:
                columns[pointer] = column
        assert at - begin == batch.bytes[row]
        cell += int(batch.cells[row])
        origin = int(batch.files[row]), int(batch.lines[row]), int(batch.received[row])
        found.append(StagedRow(*origin, bytes(batch.ids[row]), values, columns, lost))
    return found
