"""A staging task: reads its files, parses each line once, and returns batches and counts."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from hashlib import sha256
from itertools import pairwise

import msgspec
import numpy as np
import pyarrow as pa

from eventlake.columnar.batches import Origins
from eventlake.columnar.cells import ANONYMOUS, USER
from eventlake.columnar.fields import NONE
from eventlake.columnar.id_hashes import ID_BYTES
from eventlake.columnar.line_blocks import LineBlock
from eventlake.columnar.raw_lines import RawLines
from eventlake.columnar.values import (
    ARRAY,
    DATE,
    FALSE,
    HUGE,
    INTEGER,
    LOOSE_ARRAY,
    NUMBER,
    OVERFLOW,
    TEXT,
    TRUE,
)
from eventlake.load.blobs import Blob, BlobKind, joint_key, rows_key, to_ipc
from eventlake.load.cells import BatchWriter, CellBlock, TableRows
from eventlake.load.readers import CarefulReader, FastReader, RowOrigin
from eventlake.load.seen import (
    SKIPPED,
    SUPPRESSED,
    RejectedSample,
    Seen,
    SeenColumn,
    SeenFile,
    SeenTable,
    heads,
    position,
)
from eventlake.load.stage_job import Checksum, RawFile, StageJob, checksum
from eventlake.load.staged_lines import line_chunks
from eventlake.load.table_fields import BatchFields, TableFields
from eventlake.load.vocabulary import Vocabulary
from eventlake.rules.events import Event, Reason, Reject, leaves, open_envelope
from eventlake.rules.gc import gc_paused
from eventlake.rules.inference import Kind
from eventlake.rules.names import table_name
from eventlake.rules.parse import parse_line
from eventlake.rules.partitions import DAY_US, HOUR_US, DatePartition, hour_of, partition_of
from eventlake.rules.suppression import People

SAMPLES = 3  # rejected rows kept as examples, per reason and task

Numbers = Sequence[int] | np.ndarray


class Account:
    """Counts rows that are staged or left out; `seen` is the result for the driver."""

    def __init__(self, start_us: int | None, ahead_us: int | None) -> None:
        self._start_us = start_us
        self._ahead_us = ahead_us
        self._files: dict[int, SeenFile] = {}
        self.seen = Seen()

    def begin(self, file: int, hours: Iterable[str]) -> SeenFile:
        """Start counting another file; rows of these hours are loaded already."""
        self._files[file] = SeenFile(file, hours=set(hours))
        self.seen.files.append(self._files[file])
        return self._files[file]

    def take(self, files: Numbers, received: Numbers) -> None:
        """Count staged rows."""
        self.notice(files, received)
        of_file = np.asarray(files)
        first = heads(of_file)
        counts = np.diff(first, append=len(of_file)).tolist()
        for file, count in zip(of_file[first].tolist(), counts, strict=True):
            self._files[file].rows += count

    def skip(self, files: Numbers, lines: Numbers, received: Numbers) -> None:
        """Count rows of a skipped table."""
        self.seen.skipped += len(files)
        self._leave_out(SKIPPED, files, lines, received)

    def suppress(self, table: str, file: int, line: int, received: int) -> None:
        """Count a row of a suppressed person."""
        self.seen.suppressed[table] = self.seen.suppressed.get(table, 0) + 1
        self._leave_out(SUPPRESSED, [file], [line], [received])

    def reject(self, file: int, line: int, why: Reject, table: str | None) -> None:
        """Count a row that cannot be loaded."""
        self._files[file].rows += 1
        self._files[file].rejected += 1
        self._note(why.reason, file, line)
        reasons = self.seen.rejected.setdefault(table or "", {})
        reasons[why.reason] = reasons.get(why.reason, 0) + 1
        if sum(sample.reason == why.reason for sample in self.seen.samples) < SAMPLES:
            sample = RejectedSample(file, line, why.reason, str(why))
            self.seen.samples.append(sample)

    def notice(self, files: Numbers, received: Numbers) -> None:
        """Record when rows were received."""
        times, of_file = np.asarray(received, np.int64), np.asarray(files)
        hours = times // HOUR_US
        first = heads(of_file, hours)
        for file, hour in zip(of_file[first].tolist(), hours[first].tolist(), strict=True):
            self._files[file].hours.add(hour_of(hour * HOUR_US))
        if self._start_us is not None:
            self.seen.before_start += int(np.count_nonzero(times < self._start_us))
        if self._ahead_us is not None:
            self.seen.ahead += int(np.count_nonzero(times > self._ahead_us))

    def _leave_out(self, why: str, files: Numbers, lines: Numbers, received: Numbers) -> None:
        """Count valid rows that are not wanted."""
        self.take(files, received)
        for file, line in zip(files, lines, strict=True):
            self._note(why, int(file), int(line))

    def _note(self, reason: str, file: int, line: int) -> None:
        """Record a row that is not loaded, for the record log."""
        self.seen.not_loaded.setdefault(reason, []).append(position(file, line))


FLUSH_BYTES = 192 << 20  # of raw lines; bounds the memory of a task, not its input
FLUSH_LINES = 1 << 19  # the same for short lines, each of which needs about 100 bytes more
_UNPACKED = 8  # times the size of a gzipped file: most expand to less
_NO_ROWS = np.empty(0, np.int64)
_OF_SUPPRESSED = ("type", "event", "messageId", "receivedAt")  # what the record log needs
_encode = msgspec.json.Encoder().encode


def stage(job: StageJob, task: int, files: Sequence[RawFile]) -> Iterator[Blob]:
    """All blobs of one task, its report last."""
    with gc_paused():  # events are short-lived: collecting cycles doubles the time
        yield from _StageTask(job, task).run(files)


TOGETHER = 256 << 10  # bytes of lines whose partitions share a blob
_KINDS = {
    TEXT: Kind.TEXT,
    DATE: Kind.DATE,
    INTEGER: Kind.INT64,
    OVERFLOW: Kind.BIGINT_OVERFLOW,
    NUMBER: Kind.NUMBER,
    HUGE: Kind.HUGE,
    TRUE: Kind.BOOL,
    FALSE: Kind.BOOL,
    ARRAY: Kind.ARRAY,
    LOOSE_ARRAY: Kind.ARRAY,
}


@cache
def _kinds(bits: int) -> frozenset[Kind]:
    return frozenset(kind for cell, kind in _KINDS.items() if bits >> cell & 1)


@dataclass
class _StageTask:
    job: StageJob
    task: int
    tables: dict[str, TableFields] = field(default_factory=dict)
    skip_lines: dict[int, int] = field(default_factory=dict)
    people: People | None = None  # suppressed

    def __post_init__(self) -> None:
        self.vocabulary = Vocabulary(self.job.naming)
        self.fast = FastReader(self.job.limits, self.vocabulary)
        self.careful = CarefulReader(self.vocabulary)
        self.writer = BatchWriter()
        self.account = Account(self.job.start_us, self.job.ahead_us)
        self.days = None if self.job.days is None else np.array(self.job.days, np.int64)

    def run(self, files: Sequence[RawFile]) -> Iterator[Blob]:
        room = min(FLUSH_BYTES, _UNPACKED * sum(file.size for file in files))
        block = LineBlock(self.job.limits.line_bytes, room)
        if self.job.suppression is not None:
            self.people = self.job.suppression.people(self.job.storage)
        for file in files:
            seen = self.account.begin(file.number, file.skip_hours)
            self.skip_lines[file.number] = file.skip_lines
            open_stream = partial(self.job.raw.open_stream, file.path)
            read = Checksum(open_stream)
            raw = RawLines(read.open, self.job.limits.line_bytes)
            block.begin(file.number, 0)
            for piece in raw.pieces():
                seen.lines += block.add(piece)
                if block.size > FLUSH_BYTES or block.count > FLUSH_LINES:
                    yield from self._take(block)
                    if seen.rejected > self.job.limits.rejected_lines:
                        seen.broken = "it has too many rejected lines, the rest was not read"
                        break
            reason = Reason.TOO_MANY_REJECTED if seen.broken else Reason.CUT_OFF
            seen.broken = seen.broken or raw.broken
            seen.checksum = checksum(open_stream) if seen.broken else read.value
            seen.lines += block.end(whole=seen.broken is None)
            if seen.broken:
                self._reject(file.number, seen.lines + 1, Reject(reason, seen.broken), None, None)
        yield from self._take(block)
        yield Blob(BlobKind.SEEN, "", self.task, 1, self.account.seen.encode())

    def _take(self, lines: LineBlock) -> Iterator[Blob]:
        """Stage all whole lines of a block: the plain ones together, the others one by one."""
        if self.vocabulary.make_room():
            for known in self.tables.values():
                known.forget_numbers()
        block = self.fast.read(lines)
        skip = np.array([self.skip_lines.get(file, 0) for file in range(self._most_files)])
        fresh = block.numbers > skip[block.files] if len(block.files) else np.zeros(0, np.bool_)
        fresh &= block.ends > block.starts
        if self.people is not None:
            block.table[self._may_be_suppressed(block, self.people)] = NONE
        odd = fresh & (block.table == NONE)
        if self.days is not None:
            odd |= fresh & ~np.isin(block.events.received // DAY_US, self.days)
        if self._is_cramped(block, fresh):
            odd = fresh
        rows, refused = self._with_room(block, self._wanted(block, fresh & ~odd))
        odd[refused] = True
        self.account.take(block.files[rows], block.events.received[rows])
        yield from self._staged(block, rows)
        for row in np.flatnonzero(odd).tolist():
            line = block.line(row)[: self.job.limits.line_bytes + 1]
            if line.strip():
                self._read_carefully(block, row, line)
            if self.careful.size > FLUSH_BYTES:
                yield from self._staged_carefully()
        yield from self._staged_carefully()
        if self.job.keep_lines:
            yield from line_chunks(block, fresh & self._in_window(block), self.task)
        lines.clear()

    def _staged_carefully(self) -> Iterator[Blob]:
        block = self.careful.taken()
        yield from self._staged(block, np.arange(len(block.table)))

    def _may_be_suppressed(self, block: CellBlock, people: People) -> np.ndarray:
        """The rows with the id of one of these people, or an id in an unusual form."""
        named = np.zeros(len(block.table), np.bool_)
        for column, ids in ((USER, people.users), (ANONYMOUS, people.anonymous)):
            rows = np.flatnonzero(block.events.envelope[:, column] != NONE)
            texts = block.texts(block.events.envelope[rows, column])
            named[rows] |= np.array([text is None or text in ids for text in texts], np.bool_)
        return np.flatnonzero(named)

    @property
    def _most_files(self) -> int:
        return max(self.skip_lines, default=-1) + 1

    def _is_cramped(self, block: CellBlock, fresh: np.ndarray) -> bool:
        """Whether the limit of new tables may be exceeded: then the order of rows matters."""
        found = np.unique(block.table[fresh & (block.table != NONE)])
        new = {self.vocabulary.tables[table] for table in found} - self.job.columns.keys()
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
        """The number of tables that may still be added."""
        known = len(self.job.columns)
        new = len(self.tables.keys() - self.job.columns.keys())
        room = self.job.limits.tables - known - new
        return room if self.job.room is None else min(room, self.job.room - new)

    def _wanted(self, block: CellBlock, fresh: np.ndarray) -> np.ndarray:
        """The plain rows that belong to this unit; rows of skipped tables are counted."""
        rows = np.flatnonzero(fresh & (block.table != NONE))
        rows = np.asarray(rows[self._in_window(block)[rows]])
        tables = self.vocabulary.tables
        if self.job.tables is not None:
            wanted = np.array([table in self.job.tables for table in tables], np.bool_)
            rows = rows[wanted[block.table[rows]]] if len(rows) else rows
        if self.job.skip and len(rows):
            skipped = np.array([table in self.job.skip for table in tables], np.bool_)
            out = rows[skipped[block.table[rows]]]
            if len(out):
                self.account.skip(block.files[out], block.numbers[out], block.events.received[out])
                rows = rows[~skipped[block.table[rows]]]
        return rows

    def _in_window(self, block: CellBlock) -> np.ndarray:
        """The plain rows that a replay reads again, and all that are not plain."""
        if self.job.window is None:
            return np.ones(len(block.table), np.bool_)
        first, after = self.job.window
        received = block.events.received
        return np.asarray((block.table == NONE) | ((received >= first) & (received < after)))

    def _with_room(self, block: CellBlock, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The rows whose columns all fit their tables, and those to check one by one."""
        if not len(rows):
            return rows, rows
        rows = rows[np.argsort(block.table[rows], kind="stable")]
        tables = TableRows.of(block, rows, self._scratch)
        kept, refused = [_NO_ROWS], [_NO_ROWS]
        first = np.append(0, tables.ends[:-1]).tolist()
        found = zip(first, tables.ends.tolist(), tables.fields, strict=True)
        for start, end, fields in sorted(found, key=lambda table: int(rows[table[0]])):
            name = self.vocabulary.tables[int(block.table[rows[start]])]
            table = self.tables.get(name) or TableFields(self.job, name)
            if table.take([*map(self.vocabulary.path, fields.tolist())]):
                self.tables[name] = table
                kept.append(rows[start:end])
            else:
                refused.append(rows[start:end])
        return np.sort(np.concatenate(kept)), np.concatenate(refused)

    @property
    def _scratch(self) -> np.ndarray:
        return self.writer.scratch(len(self.vocabulary.fields.above))

    def _read_carefully(self, block: CellBlock, row: int, line: bytes) -> None:
        """Stage one row that is not plain, or count why not."""
        file, number = int(block.files[row]), int(block.numbers[row])
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
                block.overwrite(row, _encode({k: event[k] for k in _OF_SUPPRESSED if k in event}))
                return self.account.suppress(table, file, number, received)
            if table in self.job.skip:
                return self.account.skip([file], [number], [received])
            if self.days is not None and received // DAY_US not in self.days:
                raise Reject(Reason.TOO_MANY_DAYS, f"{event['receivedAt']}")
            event = self._identified(envelope.message_id, event, line)
            fields = self.tables.get(table) or self._new_table(table)
            if not fields.take([path for path, _ in leaves(event)]):
                most = self.job.limits.columns
                raise Reject(Reason.TOO_MANY_COLUMNS, f"{most} columns")
            self.tables[table] = fields
            of_table = self.vocabulary.table(table)
            name = self.vocabulary.name(envelope.type, envelope.event)
            origin = RowOrigin(file, number, received, of_table, name)
            self.careful.add(event, origin, line if self.job.keep_payloads else b"")
            self.account.take([file], [received])
        except Reject as reject:
            if received is not None and reject.reason is not Reason.TOO_MANY_DAYS:
                self.account.notice([file], [received])
            self._reject(file, number, reject, table, received)

    def _reject(
        self, file: int, line: int, why: Reject, table: str | None, received: int | None
    ) -> None:
        if self.job.wants(table, received):
            self.account.reject(file, line, why, table)

    def _identified(self, identity: str | None, event: Event, line: bytes) -> Event:
        """The event, with a generated id if it has none."""
        if identity is not None:
            return event
        if not self.job.hash_missing_ids:
            raise Reject(Reason.NO_MESSAGE_ID)
        return event | {"messageId": sha256(line).hexdigest()}

    def _new_table(self, table: str) -> TableFields:
        """Add a table if the limits allow it."""
        tables = self.job.columns.keys() | self.tables.keys()
        if table not in tables and len(tables) >= self.job.limits.tables:
            raise Reject(Reason.TOO_MANY_TABLES, f"{self.job.limits.tables} tables")
        if table not in tables and len(tables) - len(self.job.columns) == self.job.room:
            raise Reject(Reason.CATALOG_FULL)
        return TableFields(self.job, table)

    def _staged(self, block: CellBlock, rows: np.ndarray) -> Iterator[Blob]:
        """The rows of a block as blobs, by table and partition."""
        if not len(rows):
            return
        partitions, codes = _partitions(block.events.received[rows], self.job.date_partition)
        order = np.lexsort((codes, block.table[rows]))
        rows, codes = rows[order], codes[order]
        received, ids = block.events.received[rows], block.ids(rows)
        origins = Origins(ids, received, block.files[rows], block.numbers[rows])
        if self.job.keep_payloads:
            block = block.with_payloads()
        tables = TableRows.of(block, rows, self._scratch)
        yield from self._ids(block, tables, origins)
        lines = np.cumsum(block.ends[rows] - block.starts[rows])
        of_table = [
            _Partitions.of(partitions, codes, slice(start, end), lines)
            for start, end in pairwise([0, *tables.ends.tolist()])
        ]
        names = [self.vocabulary.tables[t] for t in block.table[rows[tables.ends - 1]].tolist()]
        fields = [
            self.tables[name].batch(numbers.tobytes(), map(self.vocabulary.path, numbers.tolist()))
            for name, numbers in zip(names, tables.fields, strict=True)
        ]
        written = self.writer.write(block, tables, fields, [p.ends for p in of_table], origins)
        for name, which, some, table in zip(names, of_table, fields, written, strict=True):
            seen = SeenTable(name, "", (0, 0, 0), self._columns(block, some, table.facts))
            first = int(rows[which.rows].min())
            seen.original = self.vocabulary.original(int(block.events.name[first]))
            seen.first = (block.files.item(first), block.numbers.item(first), 0)
            self.account.seen.tables.append(seen)
            for counts, (data, size) in zip(which.counts, table.data, strict=True):
                total = sum(counts.values())
                seen.rows |= counts
                seen.bytes |= {n: size * count // total for n, count in counts.items()}
                key = rows_key(name, *counts) if len(counts) == 1 else joint_key(name, counts)
                if self.job.ids_only:
                    continue
                yield Blob(BlobKind.ROWS, key, self.task, total, some.head + data)

    def _columns(
        self, block: CellBlock, fields: BatchFields, facts: np.ndarray
    ) -> list[SeenColumn]:
        """The fields that have a column in at least one row."""
        files, lines = block.files, block.numbers
        found = []
        for (at, column), (bits, row, place) in zip(fields.fields, facts.tolist(), strict=True):
            if bits and at.startswith("/"):
                first = files.item(row), lines.item(row), place
                found.append(SeenColumn(at, column, first, _kinds(bits)))
        return found

    def _ids(self, block: CellBlock, tables: TableRows, origins: Origins) -> Iterator[Blob]:
        """The message ids of all tables with what is needed to compare them, by hash bucket."""
        numbers, codes = np.unique(block.table[tables.rows], return_inverse=True)
        names = [self.vocabulary.tables[number] for number in numbers.tolist()]
        buckets = _buckets(origins)
        order = np.argsort(buckets, kind="stable")
        data = pa.py_buffer(np.ascontiguousarray(origins.ids[order]))
        ids = pa.table(
            {
                "id": pa.Array.from_buffers(pa.binary(ID_BYTES), len(order), [None, data], 0),
                "received": origins.received[order],
                "file": origins.files[order],
                "line": origins.lines[order],
                "payload": block.events.payload[tables.rows][order],
                "table": pa.DictionaryArray.from_arrays(codes.astype(np.int32)[order], names),
            }
        )
        found, starts = np.unique(buckets[order], return_index=True)
        for bucket, start, end in zip(found, starts, [*starts[1:], len(ids)], strict=True):
            part = ids.slice(start, end - start)
            yield Blob(BlobKind.IDS, str(bucket), self.task, len(part), to_ipc(part))


def _buckets(origins: Origins) -> np.ndarray:
    """The first four bits of each id, see `id_hashes.BUCKETS`."""
    return origins.ids.view(np.uint8)[:, 0] >> 4


@dataclass(frozen=True, slots=True)
class _Partitions:
    """The rows of a table: the end of each batch, and its number of rows by partition."""

    rows: slice
    ends: list[int]
    counts: list[dict[str, int]]

    @classmethod
    def of(
        cls, names: Sequence[str], codes: np.ndarray, rows: slice, lines: np.ndarray
    ) -> "_Partitions":
        begin = heads(codes[rows]) + rows.start
        ends = [*begin[1:].tolist(), rows.stop]
        sizes = np.diff([*begin.tolist(), rows.stop]).tolist()
        counts = {names[c]: n for c, n in zip(codes[begin].tolist(), sizes, strict=True)}
        before = lines[rows.start - 1] if rows.start else 0
        if len(counts) == 1 or lines[rows.stop - 1] - before <= TOGETHER:
            return cls(rows, [rows.stop], [counts])
        return cls(rows, ends, [{name: count} for name, count in counts.items()])


def _partitions(received: np.ndarray, layout: DatePartition) -> tuple[list[str], np.ndarray]:
    """The names of all partitions in order, and the number of the partition of each row."""
    hours = received // HOUR_US
    begin = heads(hours)  # few, because rows of an hour are adjacent
    different, of_head = np.unique(hours[begin], return_inverse=True)
    partitions = [partition_of(layout, hour * HOUR_US) for hour in different.tolist()]
    names = sorted(set(partitions))
    codes = np.array([names.index(partition) for partition in partitions])
    return names, np.repeat(codes[of_head], np.diff(begin, append=len(hours)))
