"""A staging task: reads its files, parses each line once, and returns batches and counts."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

import numpy as np
import pyarrow as pa

from eventlake.columnar.events import ANONYMOUS, USER
from eventlake.columnar.fields import NONE
from eventlake.columnar.id_hashes import bucket_numbers, hash_id
from eventlake.columnar.line_blocks import LineBlock
from eventlake.columnar.raw_lines import RawLines
from eventlake.load.blobs import FILE, HASH, ID, LINE, RECEIVED, Blob, BlobKind, to_ipc
from eventlake.load.columns import Block
from eventlake.load.fast_reader import PlainEvents
from eventlake.load.parts import HASHED_ORIGINS, Part
from eventlake.load.seen import (
    SKIPPED,
    SUPPRESSED,
    RejectedSample,
    Seen,
    SeenFile,
    SeenTable,
    heads,
    position,
)
from eventlake.load.stage_job import RawFile, StageJob
from eventlake.load.table_rows import CarefulRow, TableRows, arranged
from eventlake.rules.events import Event, Reason, Reject, open_envelope
from eventlake.rules.gc import gc_paused
from eventlake.rules.names import table_name
from eventlake.rules.parse import parse_line
from eventlake.rules.partitions import HOUR_US, hour_of
from eventlake.rules.suppression import People

SAMPLES = 3  # rejected rows shown of each reason and task

Numbers = Sequence[int] | np.ndarray


class Account:
    """Counts rows as they are taken in or left out; `seen` is what the driver gets of it."""

    def __init__(self, start_us: int | None, ahead_us: int | None) -> None:
        self._start_us = start_us
        self._ahead_us = ahead_us
        self._files: dict[int, SeenFile] = {}
        self.seen = Seen()

    def begin(self, file: int, hours: Iterable[str]) -> SeenFile:
        """The account of one more file, of which rows of some hours are loaded already."""
        self._files[file] = SeenFile(file, hours=set(hours))
        self.seen.files.append(self._files[file])
        return self._files[file]

    def take(self, files: Numbers, received: Numbers) -> None:
        """Rows that were taken in."""
        self.notice(files, received)
        of_file = np.asarray(files)
        first = heads(of_file)
        counts = np.diff(first, append=len(of_file)).tolist()
        for file, count in zip(of_file[first].tolist(), counts, strict=True):
            self._files[file].rows += count

    def skip(self, files: Numbers, lines: Numbers, received: Numbers) -> None:
        """Rows of a table that is not written."""
        self.seen.skipped += len(files)
        self._leave_out(SKIPPED, files, lines, received)

    def suppress(self, table: str, file: int, line: int, received: int) -> None:
        """A row of a suppressed person."""
        self.seen.suppressed[table] = self.seen.suppressed.get(table, 0) + 1
        self._leave_out(SUPPRESSED, [file], [line], [received])

    def reject(self, file: int, line: int, why: Reject, table: str | None) -> None:
        """A row that cannot be loaded."""
        self._files[file].rows += 1
        self._note(why.reason, file, line)
        reasons = self.seen.rejected.setdefault(table or "", {})
        reasons[why.reason] = reasons.get(why.reason, 0) + 1
        if sum(sample.reason == why.reason for sample in self.seen.samples) < SAMPLES:
            sample = RejectedSample(file, line, why.reason, str(why))
            self.seen.samples.append(sample)

    def notice(self, files: Numbers, received: Numbers) -> None:
        """Remember when rows were received."""
        times, of_file = np.asarray(received, np.int64), np.asarray(files)
        hours = times // HOUR_US
        first = heads(of_file, hours)
        for file, hour in zip(of_file[first].tolist(), hours[first].tolist(), strict=True):
            self._files[file].hours.add(hour_of(hour * HOUR_US))
        if self._start_us is not None:
            self.seen.early += int(np.count_nonzero(times < self._start_us))
        if self._ahead_us is not None:
            self.seen.ahead += int(np.count_nonzero(times > self._ahead_us))

    def _leave_out(self, why: str, files: Numbers, lines: Numbers, received: Numbers) -> None:
        """Rows that are as they should be, but not wanted."""
        self.take(files, received)
        for file, line in zip(files, lines, strict=True):
            self._note(why, int(file), int(line))

    def _note(self, reason: str, file: int, line: int) -> None:
        """Remember a row that is not loaded, for the record log."""
        self.seen.not_loaded.setdefault(reason, []).append(position(file, line))


FLUSH_BYTES = 192 << 20  # of raw lines; bounds the memory of a task, not what it may read
_UNPACKED = 8  # times the size of a gzipped file: most have less in them
_NO_ROWS = np.empty(0, np.int64)


def stage(job: StageJob, task: int, files: Sequence[RawFile]) -> Iterator[Blob]:
    """All blobs of one task, its account last."""
    with gc_paused():  # events die young: looking for cycles among them doubles the parsing
        yield from _StageTask(job, task).run(files)


@dataclass
class _StageTask:
    job: StageJob
    task: int
    tables: dict[str, TableRows] = field(default_factory=dict)
    skip_lines: dict[int, int] = field(default_factory=dict)
    people: People | None = None  # who are suppressed

    def __post_init__(self) -> None:
        self.plain = PlainEvents(self.job.limits, self.job.naming)
        self.account = Account(self.job.start_us, self.job.ahead_us)

    def run(self, files: Sequence[RawFile]) -> Iterator[Blob]:
        room = min(FLUSH_BYTES, _UNPACKED * sum(file.size for file in files))
        block = LineBlock(self.job.limits.line_bytes, room)
        if self.job.suppression is not None:
            self.people = self.job.suppression.people(self.job.storage)
        for file in files:
            seen = self.account.begin(file.number, file.skip_hours)
            self.skip_lines[file.number] = file.skip_lines
            raw = RawLines(
                lambda file=file: self.job.storage.open_stream(file.path),  # type: ignore[misc]
                self.job.limits.line_bytes,
            )
            block.begin(file.number, 0)
            for piece in raw.pieces():
                seen.lines += block.add(piece)
                if block.size > FLUSH_BYTES:
                    yield from self._take(block)
            seen.lines += block.end(whole=raw.broken is None)
            if raw.broken:
                seen.broken = raw.broken
                cut_off = Reject(Reason.CUT_OFF, raw.broken)
                self._reject(file.number, seen.lines + 1, cut_off, None, None)
        yield from self._take(block)
        yield Blob(BlobKind.SEEN, "", self.task, 1, self.account.seen.encode())

    def _take(self, lines: LineBlock) -> Iterator[Blob]:
        """Take in all whole lines of a block: the plain ones at once, the others one by one."""
        block = self.plain.read(lines)
        skip = np.array([self.skip_lines.get(file, 0) for file in range(self._most_files)])
        fresh = block.numbers > skip[block.files] if len(block.files) else np.zeros(0, np.bool_)
        if self.people is not None:
            block.table[self._may_be_suppressed(block, self.people)] = NONE
        odd = fresh & (block.table == NONE)
        if self._is_cramped(block, fresh):
            odd = fresh
        odd[self._take_plain(block, self._by_table(block, fresh & ~odd))] = True
        for row in np.flatnonzero(odd).tolist():
            line = block.line(row)[: self.job.limits.line_bytes + 1]
            if line.strip():
                self._read_carefully(int(block.files[row]), int(block.numbers[row]), line)
        lines.clear()
        yield from self._flush()

    def _may_be_suppressed(self, block: Block, people: People) -> np.ndarray:
        """The rows that name one of these people, or somebody in an unusual way."""
        named = np.zeros(len(block.table), np.bool_)
        for who, ids in ((USER, people.users), (ANONYMOUS, people.anonymous)):
            rows = np.flatnonzero(block.events.envelope[:, who] != NONE)
            texts = block.texts(block.events.envelope[rows, who])
            named[rows] |= np.array([text is None or text in ids for text in texts], np.bool_)
        return np.flatnonzero(named)

    @property
    def _most_files(self) -> int:
        return max(self.skip_lines, default=-1) + 1

    def _is_cramped(self, block: Block, fresh: np.ndarray) -> bool:
        """Whether there may be more new tables than are allowed: then order matters."""
        found = np.unique(block.table[fresh & (block.table != NONE)])
        new = {self.plain.tables[table] for table in found} - self.job.columns.keys()
        new -= self.tables.keys()
        odd = np.flatnonzero(fresh & (block.table == NONE)).tolist()
        room = self._room
        if len(new) + len(odd) > room:
            new.update(filter(None, (self._table_of(block.line(row)) for row in odd)))
            new -= self.job.columns.keys() | self.tables.keys()
        return len(new) > room

    def _table_of(self, line: bytes) -> str | None:
        try:
            envelope = open_envelope(parse_line(line, self.job.limits))
            return table_name(envelope.type, envelope.event, self.job.naming)
        except Reject:
            return None

    @property
    def _room(self) -> int:
        """How many more tables there may be."""
        known = len(self.job.columns)
        new = len(self.tables.keys() - self.job.columns.keys())
        room = self.job.limits.tables - known - new
        return room if self.job.room is None else min(room, self.job.room - new)

    def _by_table(self, block: Block, fresh: np.ndarray) -> list[np.ndarray]:
        """The plain rows that are staged, by table and hour, in order of first rows."""
        rows = np.flatnonzero(fresh & (block.table != NONE))
        if self.job.window is not None:
            received = block.events.received[rows]
            first, after = self.job.window
            rows = rows[(received >= first) & (received < after)]
        tables = block.table[rows]
        order = np.lexsort((block.events.received[rows] // HOUR_US, tables))
        groups = np.split(rows[order], np.flatnonzero(np.diff(tables[order])) + 1)
        in_order = sorted((group for group in groups if len(group)), key=np.min)
        return [group for group in in_order if self._is_staged(block, group)]

    def _is_staged(self, block: Block, rows: np.ndarray) -> bool:
        """Whether rows of one table belong to this unit; those of a skipped one are counted."""
        table = self._table(block, rows)
        if self.job.tables is not None and table not in self.job.tables:
            return False
        if table in self.job.skip:
            self.account.skip(block.files[rows], block.numbers[rows], block.events.received[rows])
            return False
        return True

    def _table(self, block: Block, rows: np.ndarray) -> str:
        return self.plain.tables[int(block.table[rows[0]])]

    def _take_plain(self, block: Block, groups: list[np.ndarray]) -> np.ndarray:
        """Take in plain rows, each group of one table; those that have to be read carefully."""
        taken, odd = [_NO_ROWS], [_NO_ROWS]
        for rows, part in zip(groups, self._parts(block, groups), strict=True):
            table = self._table(block, rows)
            of_table = self.tables.get(table)
            if of_table is None:
                of_table = TableRows(self.job, table)
            if part.rare and not of_table.may_list(part):
                [part] = self._parts(block, [rows], lists=False)
            contested = of_table.may_take(part)
            if contested is None:
                contested = np.arange(len(rows))
            if len(contested):
                odd.append(rows[contested])
                rows = np.delete(rows, contested)
                if not len(rows):
                    continue
                [part] = self._parts(block, [rows], lists=bool(part.lists))
            self.tables[table] = of_table
            of_table.take(part)
            taken.append(rows)
        rows = np.concatenate(taken)
        self.account.take(block.files[rows], block.events.received[rows])
        return np.concatenate(odd)

    def _parts(self, block: Block, groups: list[np.ndarray], lists: bool = True) -> Iterator[Part]:
        return self.plain.parts(block, groups, self.job.keep_payloads, lists)

    def _read_carefully(self, file: int, number: int, line: bytes) -> None:
        """Take in one row that is odd, or count why not."""
        table: str | None = None
        received: int | None = None
        try:
            event = parse_line(line, self.job.limits)
            envelope = open_envelope(event)
            table = table_name(envelope.type, envelope.event, self.job.naming)
            received = envelope.received_at
            if not self.job.wants(table, received):
                return
            if self.people is not None and self.people.has(event):
                return self.account.suppress(table, file, number, received)
            if table in self.job.skip:
                return self.account.skip([file], [number], [received])
            identity, event = self._identified(envelope.message_id, event, line)
            rows = self.tables.get(table)
            new = rows is None
            if rows is None:
                rows = self._new_table(table)
            row = CarefulRow(event, line, file, number, received, hash_id(identity))
            if rows.add(row) or new:
                self._settle(rows)
            if new and len(rows):
                self.tables[table] = rows
        except Reject as reject:
            if table is not None and received is not None:
                self.account.notice([file], [received])
            self._reject(file, number, reject, table, received)

    def _reject(
        self, file: int, line: int, why: Reject, table: str | None, received: int | None
    ) -> None:
        if self.job.wants(table, received):
            self.account.reject(file, line, why, table)

    def _identified(self, identity: str | None, event: Event, line: bytes) -> tuple[str, Event]:
        """The id of an event, and the event with an id that we give it if it has none."""
        if identity is not None:
            return identity, event
        if not self.job.hash_missing_ids:
            raise Reject(Reason.NO_MESSAGE_ID)
        given = sha256(line).hexdigest()
        return given, event | {"messageId": given}

    def _new_table(self, table: str) -> TableRows:
        """Rows for one more table, if the limits leave room for it."""
        tables = self.job.columns.keys() | self.tables.keys()
        if table not in tables and len(tables) >= self.job.limits.tables:
            raise Reject(Reason.TOO_MANY_TABLES, f"{self.job.limits.tables} tables")
        if table not in tables and len(tables) - len(self.job.columns) == self.job.room:
            raise Reject(Reason.CATALOG_FULL)
        return TableRows(self.job, table)

    def _settle(self, rows: TableRows) -> None:
        """Take the rows of a table apart that wait, and account for them."""
        taken = rows.settle()
        self.account.take(taken.files, taken.received)
        for row in taken.refused:
            self.account.notice([row.file], [row.received])
            self._reject(row.file, row.number, row.why, rows.table, row.received)

    def _flush(self) -> Iterator[Blob]:
        """Let go of everything gathered."""
        for rows in self.tables.values():
            if rows.has_waiting:
                self._settle(rows)
        full = [rows for rows in self.tables.values() if len(rows)]
        if not full:
            return
        lengths = [len(rows) for rows in full]
        origins = pa.concat_batches(
            part.select(HASHED_ORIGINS.names) for rows in full for part in rows.origins
        )
        names = np.repeat(np.arange(len(full), dtype=np.int32), lengths)
        tables = pa.DictionaryArray.from_arrays(names, [rows.table for rows in full])
        yield from self._ids(origins, tables)
        arrangements = arranged(origins, lengths, self.job.date_partition)
        for rows, arrangement in zip(full, arrangements, strict=True):
            for out in rows.flush(self.task, arrangement):
                if isinstance(out, SeenTable):
                    self.account.seen.tables.append(out)
                else:
                    yield out

    def _ids(self, origins: pa.RecordBatch, tables: pa.DictionaryArray) -> Iterator[Blob]:
        """The message ids of all tables with what is needed to compare them, by hash bucket."""
        named = {"id": ID, "received": RECEIVED, "file": FILE, "line": LINE, "payload": HASH}
        ids = pa.table({name: origins[at] for name, at in named.items()} | {"table": tables})
        buckets = bucket_numbers(origins[ID])
        order = np.argsort(buckets, kind="stable")
        ids = ids.take(pa.array(order))
        found, starts = np.unique(buckets[order], return_index=True)
        for bucket, start, end in zip(found, starts, [*starts[1:], len(ids)], strict=True):
            part = ids.slice(start, end - start)
            yield Blob(BlobKind.IDS, str(bucket), self.task, len(part), to_ipc(part))
