"""One staging task: reads its files, parses each line once, and yields batches and an account."""

import gc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

import numpy as np
import pyarrow as pa

from lake.dedup.ids import bucket_numbers, hash_id
from lake.envelope import open_envelope
from lake.names import STANDARD_COLUMNS, Naming, table_name
from lake.parse import parse_line
from lake.partitions import DatePartition
from lake.rejects import Reason, Reject
from lake.settings import Limits
from lake.staging.blob import Blob, BlobKind, to_ipc
from lake.staging.fields import Event, Fields
from lake.staging.hours import hour_of, partition_of
from lake.staging.places import place
from lake.staging.raw_lines import RawLines
from lake.staging.seen import SKIPPED, RejectedSample, Seen, SeenFile, SeenTable
from lake.staging.table_rows import TableRows
from lake.storage import Storage

FLUSH_BYTES = 64 << 20  # of raw lines; bounds the memory of a task, not what it may read
SAMPLES = 3  # rejected rows shown of each reason and task
STANDARD = {naming: frozenset(c.name(naming) for c in STANDARD_COLUMNS) for naming in Naming}


@dataclass(frozen=True, slots=True)
class RawFile:
    """A raw file of the unit, numbered in order of path; lines up to `skip_lines` are loaded."""

    number: int
    path: str
    size: int
    stamp: str
    skip_lines: int = 0
    skip_hours: tuple[str, ...] = ()  # in which these lines were received


@dataclass(frozen=True)
class StageJob:
    """What all staging tasks of a unit share."""

    storage: Storage
    naming: Naming
    date_partition: DatePartition
    limits: Limits
    columns: dict[str, frozenset[str]]  # of the tables the lake has
    skip: frozenset[str] = frozenset()
    hash_missing_ids: bool = False
    start_us: int | None = None
    ahead_us: int | None = None
    keep_payloads: bool = False
    window: tuple[int, int] | None = None  # of a replay: [from, to) of receivedAt
    tables: frozenset[str] | None = None  # of a replay: only these
    room: int | None = None  # for so many new tables, if that is known, the catalog has room

    def new_fields(self) -> Fields:
        return Fields(self.naming, self.date_partition.keys, self.limits.column_name)

    def wants(self, table: str | None, received: int | None) -> bool:
        """Whether a row belongs to this unit at all; every row does, unless it is a replay's."""
        if self.window is not None and (
            received is None or not self.window[0] <= received < self.window[1]
        ):
            return False
        return self.tables is None or table in self.tables


def stage(job: StageJob, task: int, files: Sequence[RawFile]) -> Iterator[Blob]:
    """All blobs of one task, its account last."""
    collecting = gc.isenabled()
    gc.disable()  # events die young by reference count; looking for cycles doubles the parsing
    try:
        yield from _StageTask(job, task).run(files)
    finally:
        if collecting:
            gc.enable()


@dataclass
class _StageTask:
    job: StageJob
    task: int
    seen: Seen = field(default_factory=Seen)
    tables: dict[str, TableRows] = field(default_factory=dict)
    gathered: int = 0

    def run(self, files: Sequence[RawFile]) -> Iterator[Blob]:
        for file in files:
            yield from self._file(file)
        yield from self._flush()
        yield Blob(BlobKind.SEEN, "", self.task, 1, self.seen.encode())

    def _file(self, file: RawFile) -> Iterator[Blob]:
        seen = SeenFile(file.number, hours=set(file.skip_hours))
        lines = RawLines(
            lambda: self.job.storage.open_stream(file.path), self.job.limits.line_bytes
        )
        for number, line in lines:
            if number <= file.skip_lines or not line.strip():
                continue
            self._line(seen, number, line)
            self.gathered += len(line)
            if self.gathered > FLUSH_BYTES:
                yield from self._flush()
        seen.lines = lines.lines
        if lines.broken:
            seen.broken = lines.broken
            self._reject(seen, lines.lines + 1, Reject(Reason.CUT_OFF, lines.broken), None, None)
        self.seen.files.append(seen)

    def _line(self, seen: SeenFile, number: int, line: bytes) -> None:
        """Take in one row, or count why not."""
        table: str | None = None
        received: int | None = None
        try:
            event = parse_line(line, self.job.limits)
            envelope = open_envelope(event)
            table = table_name(envelope.type, envelope.event, self.job.naming)
            received = envelope.received_at
            if not self.job.wants(table, received):
                return
            seen.hours.add(hour_of(received))
            self._notice_time(received)
            if table in self.job.skip:
                self.seen.skipped += 1
                self._note(SKIPPED, seen.number, number)
            else:
                identity = self._identity(envelope.message_id, event, line)
                rows = self._rows(table, event, line)
                partition = partition_of(self.job.date_partition, received)
                payload = line if self.job.keep_payloads else None
                rows.add(event, envelope, seen.number, number, partition, identity, payload)
            seen.rows += 1
        except Reject as reject:
            self._reject(seen, number, reject, table, received)

    def _identity(self, identity: str | None, event: Event, line: bytes) -> bytes:
        if identity is None:
            if not self.job.hash_missing_ids:
                raise Reject(Reason.NO_MESSAGE_ID)
            identity = event["messageId"] = sha256(line).hexdigest()
        return hash_id(identity)

    def _rows(self, table: str, event: Event, line: bytes) -> TableRows:
        """The rows of the event's table, if the limits leave room for it."""
        rows = self.tables.get(table)
        if rows is None:
            tables = self.job.columns.keys() | self.tables.keys()
            if table not in tables and len(tables) >= self.job.limits.tables:
                raise Reject(Reason.TOO_MANY_TABLES, f"{self.job.limits.tables} tables")
            if table not in tables and len(tables) - len(self.job.columns) == self.job.room:
                raise Reject(Reason.CATALOG_FULL)
            rows = TableRows(table, self.job.new_fields())
        known = self.job.columns.get(table, STANDARD[self.job.naming])
        # As many colons, at least, as keys: the exact count is needed only near the limit.
        if len(known) + rows.width + line.count(b":") > self.job.limits.columns:
            columns = known | rows.columns_with(event)
            if len(columns) > self.job.limits.columns:
                raise Reject(Reason.TOO_MANY_COLUMNS, f"{self.job.limits.columns} columns")
        self.tables[table] = rows
        return rows

    def _notice_time(self, received: int) -> None:
        if self.job.start_us is not None and received < self.job.start_us:
            self.seen.early += 1
        if self.job.ahead_us is not None and received > self.job.ahead_us:
            self.seen.ahead += 1

    def _reject(
        self, seen: SeenFile, line: int, why: Reject, table: str | None, received: int | None
    ) -> None:
        if not self.job.wants(table, received):
            return
        seen.rows += 1
        self._note(why.reason, seen.number, line)
        reasons = self.seen.rejected.setdefault(table or "", {})
        reasons[why.reason] = reasons.get(why.reason, 0) + 1
        if sum(sample.reason == why.reason for sample in self.seen.samples) < SAMPLES:
            sample = RejectedSample(seen.number, line, why.reason, str(why))
            self.seen.samples.append(sample)

    def _note(self, reason: str, file: int, line: int) -> None:
        """Remember a row that is not loaded, for the record log."""
        self.seen.not_loaded.setdefault(reason, []).append(place(file, line))

    def _flush(self) -> Iterator[Blob]:
        """Let go of everything gathered."""
        full = {table: rows for table, rows in self.tables.items() if len(rows)}
        if full:
            yield from self._ids(full)
        for rows in full.values():
            for out in rows.flush(self.task):
                if isinstance(out, SeenTable):
                    self.seen.tables.append(out)
                else:
                    yield out
        self.gathered = 0

    def _ids(self, full: dict[str, TableRows]) -> Iterator[Blob]:
        """The message ids of all tables, by hash bucket."""
        ids = pa.concat_tables(
            pa.table(
                {
                    "id": pa.array(rows.ids, pa.binary(16)),
                    "received": pa.array(rows.received, pa.int64()),
                    "file": pa.array(rows.files, pa.int32()),
                    "line": pa.array(rows.lines, pa.int32()),
                    "payload": pa.array(rows.payload_hashes, pa.uint32()),
                    "table": pa.array([table] * len(rows), pa.string()).dictionary_encode(),
                }
            )
            for table, rows in full.items()
        ).unify_dictionaries()
        buckets = bucket_numbers(ids["id"].combine_chunks())
        for bucket in np.unique(buckets):
            part = ids.filter(pa.array(buckets == bucket)).combine_chunks()
            yield Blob(BlobKind.IDS, str(bucket), self.task, len(part), to_ipc(part))
