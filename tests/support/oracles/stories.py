"""Stories of syncs and replays, played on a lake and on the reference implementation."""

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from eventlake.columnar.id_hashes import hash_id, words
from eventlake.rules.casts import Outcome
from eventlake.rules.counts import CastCounts, UnitReport
from eventlake.rules.names import RESCUED_DATA
from eventlake.rules.parse import parse_value
from eventlake.runs.resolve import RESCUED
from eventlake.state.id_index import day_of
from tests.support.json_values import json_of
from tests.support.lakes.archive import as_line
from tests.support.lakes.random_archives import Replay, Suppressed, Sync
from tests.support.lakes.retyping import suppress_only
from tests.support.lakes.runs import Row, Runs, utc
from tests.support.oracles.invariants import is_indexed
from tests.support.oracles.reference import Account, ReferenceLake, Scope

DAY = timedelta(days=1)


def micros(moment: datetime) -> int:
    return (moment - utc("1970-01-01")) // timedelta(microseconds=1)


class ReferenceStory:
    """A story on the reference implementation, step by step."""

    def __init__(self, runs: Runs) -> None:
        self.runs = runs
        self.lake = ReferenceLake(runs.source)
        self.archive: dict[tuple[str, str], list[bytes]] = {}

    def sync(self, step: Sync) -> list[Account]:
        """All files are one unit, or each day folder is; in order of folder and name."""
        self._suppress(step.suppressed)
        new = {place: [as_line(line) for line in lines] for place, lines in step.files.items()}
        self.archive |= new
        together = self.runs.source.unit_bytes > 1
        days = [None] if together else sorted({day for day, _ in new})
        return [
            self.lake.load([new[place] for place in sorted(new) if day in (None, place[0])])
            for day in days
        ]

    def replay(self, step: Replay) -> list[Account]:
        """Each day is a unit, over all files."""
        self._suppress(step.suppressed)
        files = [self.archive[place] for place in sorted(self.archive)]
        accounts, start = [], utc(step.start)
        while start < utc(step.end):
            end = micros(utc(step.end))
            scope = Scope(micros(start), micros(start + DAY), step.tables or None, end)
            accounts.append(self.lake.load(files, scope))
            start += DAY
        return accounts

    def _suppress(self, people: Suppressed) -> None:
        self.lake.users, self.lake.visitors = set(people.users), set(people.visitors)


def play(step: Sync | Replay, runs: Runs) -> UnitReport:
    suppress_only(runs.storage, step.suppressed.users, step.suppressed.visitors)
    if isinstance(step, Replay):
        return runs.replay(step.start, step.end, *step.tables)
    for (day, name), lines in step.files.items():
        runs.archive.day(day).file(name, *lines)
    return runs.sync()


def check_report(report: UnitReport, accounts: list[Account], reference: ReferenceStory) -> None:
    total: dict[str, Counter[Any]] = {}
    for part in ("suppressed", "rejected", "duplicates", "loaded", "casts", "rescued"):
        total[part] = sum((getattr(account, part) for account in accounts), Counter())
    assert report.rows_in == sum(account.rows_in for account in accounts)
    assert report.skipped == sum(account.skipped for account in accounts)
    for name in ("suppressed", "rejected", "duplicates"):
        assert getattr(report, name) == total[name].total()
    assert report.row_count == total["loaded"].total()
    for table in report.tables.values():
        assert table.suppressed == total["suppressed"][table.table]
        assert table.row_count == total["loaded"][table.table]
        assert table.duplicates == total["duplicates"][table.table]
        assert table.rescued_cells == total["rescued"][table.table]
        names = {name for of, name, _ in total["casts"] if of == table.table}
        assert table.casts == {
            name: CastCounts(*(total["casts"][table.table, name, outcome] for outcome in Outcome))
            for name in names
        }


def rows_of(runs: Runs, table: str) -> list[Any]:
    keys = runs.table(table).partition_keys
    return sorted((_row(row, keys) for row in runs.rows(table)), key=repr)


def _row(row: Row, keys: tuple[str, ...]) -> Any:
    rescued = parse_value(row[RESCUED_DATA]) if row.get(RESCUED_DATA) is not None else {}
    cells = {
        name: cell
        for name, cell in row.items()
        if cell is not None and name not in (*keys, RESCUED_DATA)
    }
    return (
        tuple(row[key] for key in keys),
        sorted(cells.items()),
        sorted((pointer, json_of(value)) for pointer, value in rescued.items()),
    )


def check_records(runs: Runs, report: UnitReport) -> None:
    """Every row that came in is in the record log once, by what became of it."""
    records = runs.records(max(runs.reports(), key=lambda run: int(run[1:])))
    assert len({(file, line) for file, line, _ in records}) == len(records)
    statuses = Counter(status for _, _, status in records)
    assert statuses["succeeded"] == report.row_count
    assert statuses["DUPLICATE"] == report.duplicates
    assert statuses["NULL"] + statuses["rejected"] == (
        report.rejected + report.skipped + report.suppressed
    )


def check_index(runs: Runs, lake: ReferenceLake) -> None:
    """The index has the id of every row, and no other, but for days that it has let go of."""
    indexed = is_indexed(runs.state())
    rows = (row for table in lake.tables.values() for row in table.rows)
    wanted = [(row.id, row.received) for row in rows if indexed(day_of(row.received))]
    hashes = words(pa.array([hash_id(id) for id, _ in wanted], pa.binary(16))).tolist()
    assert sorted(entry for entries in runs.index().values() for entry in entries) == sorted(
        (first, second, at) for (first, second), (_, at) in zip(hashes, wanted, strict=True)
    )


def check_lake(runs: Runs, lake: ReferenceLake) -> None:
    assert runs.state().rows == {
        f"shop.{runs.source.catalog_table(name)}": len(table.rows)
        for name, table in lake.tables.items()
    }
    assert runs.tables() == sorted(map(runs.source.catalog_table, lake.tables))
    for name, table in lake.tables.items():
        catalog_name = runs.source.catalog_table(name)
        assert runs.table(catalog_name).comment == table.original
        wanted_columns = [(c.name, c.type.sql, c.pointer) for c in table.columns.values()]
        assert runs.columns(catalog_name) == wanted_columns
        wanted = [
            (
                row.partition,
                sorted((name, cell) for name, cell in row.cells.items() if cell is not None),
                sorted((pointer, json_of(value)) for pointer, value in row.rescued.items()),
            )
            for row in table.rows
        ]
        assert rows_of(runs, catalog_name) == sorted(wanted, key=repr)


def follow_rescued_data(runs: Runs, lake: ReferenceLake) -> None:
    """The column may come with the first day that needs it, before others that come later."""
    for name, table in lake.tables.items():
        columns = [column for column, _, _ in runs.columns(runs.source.catalog_table(name))]
        known = {**table.columns, RESCUED_DATA: RESCUED}
        assert set(table.columns) <= set(columns) <= set(known)
        if RESCUED_DATA in columns:
            order = [c for c in table.columns if c != RESCUED_DATA]
            order.insert(columns.index(RESCUED_DATA), RESCUED_DATA)
            table.columns = {column: known[column] for column in order}
