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
from lake.staging.glance import Glances
from lake.staging.hours import HOUR_US, hour_of
from lake.staging.places import place
from lake.staging.raw_lines import RawLines
from lake.staging.seen import SKIPPED, SUPPRESSED, RejectedSample, Seen, SeenFile, SeenTable
from lake.staging.table_columns import TableColumns
from lake.staging.table_rows import TableRows
from lake.storage import Storage
from lake.suppression.people import People
from lake.suppression.suppression import Suppression

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
    suppression: Suppression | None = None  # None: nobody is
    hash_missing_ids: bool = False
    start_us: int | None = None
    ahead_us: int | None = None
    keep_payloads: bool = False
    window: tuple[int, int] | None = None  # of a replay: [from, to) of receivedAt
    tables: frozenset[str] | None = None  # of a replay: only these
    room: int | None = None  # for so many new tables, if that is known, the catalog has room

    def new_rows(self, table: str) -> TableRows:
        known = self.columns.get(table, STANDARD[self.naming])
        columns = TableColumns(self.naming, self.date_partition.keys, self.limits, known)
        return TableRows(table, columns, self.date_partition, self.keep_payloads)

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
    files: dict[int, SeenFile] = field(default_factory=dict)
    tables: dict[str, TableRows] = field(default_factory=dict)
    gathered: int = 0
    people: People | None = None  # who are suppressed

    def run(self, files: Sequence[RawFile]) -> Iterator[Blob]:
        glances = Glances(self.job.limits, self.job.naming)
        if self.job.suppression is not None:
            self.people = self.job.suppression.people(self.job.storage)
        for file in files:
            yield from self._file(file, glances)
        yield from self._flush()
        self.seen.files = list(self.files.values())
        yield Blob(BlobKind.SEEN, "", self.task, 1, self.seen.encode())

    def _file(self, file: RawFile, glances: Glances) -> Iterator[Blob]:
        seen = self.files[file.number] = SeenFile(file.number, hours=set(file.skip_hours))
        lines = RawLines(
            lambda: self.job.storage.open_stream(file.path), self.job.limits.line_bytes
        )
        people = self.people
        for number, line in lines:
            if number <= file.skip_lines or not line.strip():
                continue
            glance = glances.at(line)
            rows = self.tables.get(glance.table) if glance else None
            if (
                glance is None
                or rows is None
                or glance.table in self.job.skip
                or (people is not None and people.may_have(line))
            ):
                self._read_carefully(seen, number, line)
            elif self.job.wants(glance.table, glance.received_at):
                identity = hash_id(glance.message_id)
                if rows.add(line, file.number, number, glance.received_at, identity, None):
                    self._settle(rows)
            self.gathered += len(line)
            if self.gathered > FLUSH_BYTES:
                yield from self._flush()
        seen.lines = lines.lines
        if lines.broken:
            seen.broken = lines.broken
            self._reject(seen, lines.lines + 1, Reject(Reason.CUT_OFF, lines.broken), None, None)

    def _read_carefully(self, seen: SeenFile, number: int, line: bytes) -> None:
        """Take in one row that is odd or the first of its table, or count why not."""
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
                self.seen.suppressed[table] = self.seen.suppressed.get(table, 0) + 1
                return self._leave_out(SUPPRESSED, seen, number, received)
            if table in self.job.skip:
                self.seen.skipped += 1
                return self._leave_out(SKIPPED, seen, number, received)
            identity, given = self._identity(envelope.message_id, line)
            rows = self.tables.get(table)
            new = rows is None
            if rows is None:
                rows = self._new_table(table)
            if rows.add(line, seen.number, number, received, hash_id(identity), given) or new:
                self._settle(rows)
            if new and len(rows):
                self.tables[table] = rows
        except Reject as reject:
            if table is not None and received is not None:
                self._notice([seen.number], [received])
            self._reject(seen, number, reject, table, received)

    def _leave_out(self, why: str, seen: SeenFile, number: int, received: int) -> None:
        """Account for a row that is as it should be, but not wanted."""
        self._notice([seen.number], [received])
        self._note(why, seen.number, number)
        seen.rows += 1

    def _identity(self, identity: str | None, line: bytes) -> tuple[str, str | None]:
        """The id of a row, and again if it is one that we give it."""
        if identity is not None:
            return identity, None
        if not self.job.hash_missing_ids:
            raise Reject(Reason.NO_MESSAGE_ID)
        given = sha256(line).hexdigest()
        return given, given

    def _new_table(self, table: str) -> TableRows:
        """Rows for one more table, if the limits leave room for it."""
        tables = self.job.columns.keys() | self.tables.keys()
        if table not in tables and len(tables) >= self.job.limits.tables:
            raise Reject(Reason.TOO_MANY_TABLES, f"{self.job.limits.tables} tables")
        if table not in tables and len(tables) - len(self.job.columns) == self.job.room:
            raise Reject(Reason.CATALOG_FULL)
        return self.job.new_rows(table)

    def _settle(self, rows: TableRows) -> None:
        """Take the lines of a table apart, and account for them."""
        taken = rows.settle()
        self._notice(taken.files, taken.received)
        for number, count in zip(*np.unique(taken.files, return_counts=True), strict=True):
            self.files[int(number)].rows += int(count)
        for row in taken.refused:
            seen = self.files[row.file]
            if row.why.reason is Reason.TOO_MANY_COLUMNS:
                self._notice([row.file], [row.received])
                self._reject(seen, row.number, row.why, rows.table, row.received)
            else:  # it only looked like an event of this table
                self._reject(seen, row.number, row.why, None, None)

    def _notice(
        self, files: Sequence[int] | np.ndarray, received: Sequence[int] | np.ndarray
    ) -> None:
        """Remember when rows were received."""
        times = np.asarray(received, np.int64)
        for file, hour in set(
            zip(np.asarray(files).tolist(), (times // HOUR_US).tolist(), strict=True)
        ):
            self.files[file].hours.add(hour_of(hour * HOUR_US))
        if self.job.start_us is not None:
            self.seen.early += int(np.count_nonzero(times < self.job.start_us))
        if self.job.ahead_us is not None:
            self.seen.ahead += int(np.count_nonzero(times > self.job.ahead_us))

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
        for rows in self.tables.values():
            self._settle(rows)
        full = [rows for rows in self.tables.values() if len(rows)]
        if full:
            yield from self._ids(full)
        for rows in full:
            for out in rows.flush(self.task):
                if isinstance(out, SeenTable):
                    self.seen.tables.append(out)
                else:
                    yield out
        self.gathered = 0

    def _ids(self, full: Sequence[TableRows]) -> Iterator[Blob]:
        """The message ids of all tables, by hash bucket."""
        ids = pa.concat_tables(rows.ids() for rows in full).unify_dictionaries()
        buckets = bucket_numbers(ids["id"].combine_chunks())
        for bucket in np.unique(buckets):
            part = ids.filter(pa.array(buckets == bucket)).combine_chunks()
            yield Blob(BlobKind.IDS, str(bucket), self.task, len(part), to_ipc(part))
