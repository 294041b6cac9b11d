"""Audits a range of a source: compares the events of the archive with the rows, id by id."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

import duckdb
import pyarrow as pa

from eventlake.audit.rows import ArchiveRows, LakeRows
from eventlake.audit.rule import Demand, Raw, RawVerdict, Row, RowVerdict, judge
from eventlake.audit.snapshot import AuditedFiles, DataFile, Scope, Snapshot, take_snapshot
from eventlake.catalog import room
from eventlake.lake import Lake
from eventlake.rules.errors import ConservationError
from eventlake.rules.partitions import DAY_US, DatePartition, hour_of, partition_of
from eventlake.rules.text import plural
from eventlake.runs.archive import archive_storage
from eventlake.state.suppression import Suppression

_MEMORY = "1GB"
"""The memory limit of DuckDB; more data is stored in the temporary folder."""

_TABLES = """
    CREATE TABLE events (id VARCHAR, received BIGINT, "table" VARCHAR, demand TINYINT);
    CREATE TABLE rows (id VARCHAR, received BIGINT, "table" VARCHAR, judged BOOLEAN, file INTEGER);
"""
# All ids but those with one event and one matching row, or only rows around the range.
_DOUBTFUL = """
    CREATE TABLE doubtful AS
    SELECT id FROM (
        SELECT id, received, "table", 1 AS events, 0 AS judged FROM events
        UNION ALL SELECT id, received, "table", 0, judged::INT FROM rows
    )
    GROUP BY id
    HAVING sum(events) + sum(judged) > 0 AND NOT (
        sum(events) = 1 AND sum(judged) = 1 AND count(*) = 2 AND count("table") = 2
        AND min(received) = max(received) AND min("table") = max("table")
    )
"""
_SIMPLE = 'SELECT "table", count(*) FROM events ANTI JOIN doubtful USING (id) GROUP BY "table"'
_MEMBERS = """
    SELECT id, received, "table", demand, NULL AS judged, NULL AS file, rowid AS place
    FROM events SEMI JOIN doubtful USING (id)
    UNION ALL
    SELECT id, received, "table", NULL, judged, file, rowid FROM rows SEMI JOIN doubtful USING (id)
    ORDER BY id, received, place
"""


@dataclass(frozen=True, slots=True)
class JudgedId:
    """The events and rows of one id, in order of time, each with its verdict."""

    id: str
    events: list[tuple[Raw, RawVerdict]]
    rows: list[tuple[Row, int, RowVerdict]]  # with the number of the data file


class Comparison(AbstractContextManager["Comparison"]):
    """Collects events and rows on disk, in the order of archive and files, then compares them."""

    def __init__(self, folder: Path) -> None:
        self._connection = duckdb.connect(folder / "audit.duckdb")
        self._connection.execute(f"SET memory_limit = '{_MEMORY}'; {_TABLES}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def add(self, side: str, batch: pa.Table) -> None:
        """Add `events` or `rows`."""
        self._connection.register("batch", batch)
        self._connection.execute(f"INSERT INTO {side} BY NAME FROM batch")

    def loaded(self) -> Counter[str]:
        """By table, the events of ids that need no judgement: one event, and its row."""
        self._connection.execute(_DOUBTFUL)
        return Counter(dict(self._connection.execute(_SIMPLE).fetchall()))

    def judged(self, window: int) -> Iterator[JudgedId]:
        """The verdicts on all other ids; call `loaded` first."""
        found = self._connection.execute(_MEMBERS)
        for id, members in groupby(iter(found.fetchone, None), key=lambda member: member[0]):
            yield _judged(id, list(members), window)


def _judged(id: str, members: Sequence[tuple], window: int) -> JudgedId:  # type: ignore[type-arg]
    raw, rows, files = [], [], []
    for _, received, table, demand, judged, file, _ in members:
        if demand is not None:
            raw.append(Raw(received, table, Demand(demand)))
        else:
            rows.append(Row(received, table, judged))
            files.append(file)
    raw_verdicts, row_verdicts = judge(raw, rows, window)
    return JudgedId(
        id,
        list(zip(raw, raw_verdicts, strict=True)),
        list(zip(rows, files, row_verdicts, strict=True)),
    )


EXAMPLES = 3
"""Ids shown of each kind of difference in a partition."""

MISSING, UNEXPECTED, DOUBLED = "missing", "unexpected", "doubled"
_KINDS = {RowVerdict.DOUBLED: DOUBLED, RowVerdict.UNEXPECTED: UNEXPECTED}

PartitionRef = tuple[str, str]
"""A table and the path of a partition."""


@dataclass
class Findings:
    """The differences found so far."""

    layout: DatePartition
    data_files: Sequence[DataFile]
    gone_hours: frozenset[str]
    outcomes: Counter[tuple[str, RawVerdict]] = field(default_factory=Counter)
    unchecked: Counter[str] = field(default_factory=Counter)
    differences: dict[PartitionRef, Counter[str]] = field(
        default_factory=lambda: defaultdict(Counter)
    )
    examples: dict[PartitionRef, list[tuple[str, str]]] = field(  # kind, message id
        default_factory=lambda: defaultdict(list)
    )

    def add(self, one: JudgedId) -> None:
        """Add the verdicts on an id."""
        for event, verdict in one.events:
            self.outcomes[event.table, verdict] += 1
            if verdict is RawVerdict.MISSING:
                place = event.table, partition_of(self.layout, event.received)
                self._differs(place, MISSING, one.id)
        for row, number, row_verdict in one.rows:
            file, kind = self.data_files[number], _KINDS.get(row_verdict)
            if kind == UNEXPECTED and self._cannot_be_checked(row.received):
                self.unchecked[file.table] += 1
            elif kind is not None:
                self._differs((file.table, file.partition), kind, one.id)

    def _cannot_be_checked(self, received: int) -> bool:
        """Whether the row may come from a raw file that no longer exists."""
        try:
            return bool(self.gone_hours) and hour_of(received) in self.gone_hours
        except OverflowError:  # a time that no calendar has
            return False

    def _differs(self, place: PartitionRef, kind: str, id: str) -> None:
        self.differences[place][kind] += 1
        if self.differences[place][kind] <= EXAMPLES:
            self.examples[place].append((kind, id))


@dataclass(frozen=True, slots=True)
class TableAudit:
    """The rows of the range that belong to a table (`name` as in the catalog), by outcome."""

    table: str
    name: str
    rows_in: int = 0
    loaded: int = 0
    duplicates: int = 0
    rejected: int = 0
    suppressed: int = 0
    skipped: int = 0
    waiting: int = 0
    missing: int = 0
    # Of the rows that the lake has:
    unexpected: int = 0
    doubled: int = 0
    unchecked: int = 0

    @property
    def agrees(self) -> bool:
        return not (self.missing or self.unexpected or self.doubled)

    def check_balance(self) -> None:
        """Check that every row in is accounted for."""
        parts = (
            self.loaded,
            self.duplicates,
            self.rejected,
            self.suppressed,
            self.skipped,
            self.waiting,
            self.missing,
        )
        if self.rows_in != sum(parts):
            raise ConservationError(
                f"The audit's account of {self.name or 'rows without a table'} does not balance: "
                f"{self.rows_in} rows in, {sum(parts)} accounted for. Please report this."
            )


@dataclass(frozen=True, slots=True)
class PartitionAudit:
    """A partition that differs: rows that should be there, rows that are, and some ids."""

    table: str
    name: str
    partition: str
    expected: int
    found: int
    missing: int = 0
    unexpected: int = 0
    doubled: int = 0
    problems: tuple[str, ...] = ()
    examples: tuple[tuple[str, str], ...] = ()  # kind, message id


@dataclass(frozen=True, slots=True)
class Audit:
    """All tables of a source, and the partitions in which lake and archive differ."""

    scope: Scope
    tables: tuple[TableAudit, ...]
    partitions: tuple[PartitionAudit, ...]
    raw: AuditedFiles

    @property
    def agrees(self) -> bool:
        return not self.partitions

    @property
    def total(self) -> TableAudit:
        names = [name for name in TableAudit.__slots__ if name not in ("table", "name")]
        sums = {name: sum(getattr(table, name) for table in self.tables) for name in names}
        return TableAudit("", "", **sums)


Progress = Callable[[str], None]


def audit(lake: Lake, scope: Scope, progress: Progress = lambda _: None) -> Audit:
    """Compare a range of a source with its raw archive; writes only to a temporary folder."""
    lake = lake.for_source(scope.source)
    snapshot = take_snapshot(lake, scope, progress)
    archive, tables = _archive_rows(lake, scope, snapshot), LakeRows(lake.storage, scope)
    layout, raw = scope.source.date_partition, snapshot.raw
    findings = Findings(layout, snapshot.data_files, raw.gone_hours)
    with (
        TemporaryDirectory(prefix="datalake-audit-") as folder,
        Comparison(Path(folder)) as comparison,
    ):
        for done, file in enumerate(raw.read, start=1):
            seen = f"{archive.rows_in.total():,} rows of the range"
            progress(f"raw file {done} of {len(raw.read)}, {seen} so far")
            for batch in archive.read(
                file.path, raw.loaded_lines.get(file.path), raw.hours.get(file.path)
            ):
                comparison.add("events", batch)
        for done, data_file in enumerate(snapshot.data_files, start=1):
            progress(f"data file {done} of {len(snapshot.data_files)}")
            for batch in tables.read(data_file):
                comparison.add("rows", batch)
        progress("comparing")
        for table, count in comparison.loaded().items():
            findings.outcomes[table, RawVerdict.LOADED] = count
        for one in comparison.judged(scope.source.dedup_days * DAY_US):
            findings.add(one)
    return _report(scope, snapshot, archive, tables, findings)


def _archive_rows(lake: Lake, scope: Scope, snapshot: Snapshot) -> ArchiveRows:
    columns = {table: frozenset(schema.types()) for table, schema in snapshot.tables.items()}
    suppression = Suppression.of(lake.storage, scope.source)
    people = suppression.people(lake.storage) if suppression else None
    full = cache(lambda: _full(lake, scope))
    return ArchiveRows(archive_storage(lake.storage, scope.source), scope, columns, full, people)


def _full(lake: Lake, scope: Scope) -> bool:
    names = lake.catalog.names(scope.source.database)
    return room(lake.catalog, names, scope.source.limits) == 0


def _report(
    scope: Scope, snapshot: Snapshot, archive: ArchiveRows, tables: LakeRows, findings: Findings
) -> Audit:
    accounts = tuple(_accounts(scope, archive, findings))
    for account in accounts:
        account.check_balance()
    problems = _problems(scope, snapshot, tables)
    partitions = []
    for place in sorted({*findings.differences, *problems}):
        count, found = findings.differences[place], tables.found[place]
        partitions.append(
            PartitionAudit(
                table=place[0],
                name=scope.source.catalog_table(place[0]),
                partition=place[1],
                expected=found - count[UNEXPECTED] - count[DOUBLED] + count[MISSING],
                found=found,
                missing=count[MISSING],
                unexpected=count[UNEXPECTED],
                doubled=count[DOUBLED],
                problems=tuple(problems.get(place, ())),
                examples=tuple(findings.examples[place]),
            )
        )
    return Audit(scope, accounts, tuple(partitions), snapshot.raw)


def _accounts(scope: Scope, archive: ArchiveRows, findings: Findings) -> Iterable[TableAudit]:
    differences: dict[str, Counter[str]] = defaultdict(Counter)
    for (table, _), counts in findings.differences.items():
        differences[table] += counts
    for table in sorted({*archive.rows_in, *differences, *findings.unchecked}):
        outcomes = {verdict: findings.outcomes[table, verdict] for verdict in RawVerdict}
        yield TableAudit(
            table=table,
            name=scope.source.catalog_table(table) if table else "",
            rows_in=archive.rows_in[table],
            loaded=outcomes[RawVerdict.LOADED],
            duplicates=outcomes[RawVerdict.DUPLICATE],
            rejected=archive.rejected[table] + outcomes[RawVerdict.REJECTED],
            suppressed=archive.suppressed[table],
            skipped=archive.skipped[table],
            waiting=outcomes[RawVerdict.WAITING],
            missing=outcomes[RawVerdict.MISSING],
            unexpected=differences[table][UNEXPECTED],
            doubled=differences[table][DOUBLED],
            unchecked=findings.unchecked[table],
        )


def _problems(scope: Scope, snapshot: Snapshot, tables: LakeRows) -> dict[PartitionRef, list[str]]:
    """Problems of partitions apart from their ids."""
    problems = {place: list(found) for place, found in tables.problems.items()}
    for one in snapshot.partitions:
        found = tables.found[one.table, one.path]
        whole = scope.window.start <= one.window.start and one.window.end <= scope.window.end
        if whole and found != one.rows:
            problem = f"the catalog says {plural(one.rows, 'row')}, its files have {found:,}"
            problems.setdefault((one.table, one.path), []).append(problem)
    return problems
