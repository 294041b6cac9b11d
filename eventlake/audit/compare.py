"""Compares the events of the archive with the rows of the lake, id by id."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Self

import duckdb
import pyarrow as pa

from eventlake.audit.rows import DataFile
from eventlake.audit.rule import Demand, Raw, RawVerdict, Row, RowVerdict, judge
from eventlake.rules.partitions import DatePartition, hour_of, partition_of

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
