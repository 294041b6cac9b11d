"""Holding a lake to the account of whoever made its archive."""

from collections import Counter
from dataclasses import dataclass

from eventlake.lake import Lake
from eventlake.rules.errors import LakeError
from eventlake.sample import Account, Slot
from eventlake.settings.models import Source
from eventlake.sql import LakeSql


@dataclass(frozen=True, slots=True)
class Agreement:
    """How much was compared, all of it equal."""

    tables: int = 0
    hours: int = 0
    rows: int = 0

    def __add__(self, other: "Agreement") -> "Agreement":
        return Agreement(
            self.tables + other.tables, self.hours + other.hours, self.rows + other.rows
        )


def hold_to_account(lake: Lake, account: Account) -> Agreement:
    """Count the rows of every source, table and hour in the lake; raises where one differs."""
    return sum((_source(lake, account, s) for s in lake.settings.sources), Agreement())


def _source(lake: Lake, account: Account, source: Source) -> Agreement:
    loads = [load for sync in account.as_they_arrive(source.id) for load in sync]
    expected = account.expected(source.id, loads).rows
    found = _rows(lake, source)
    wrong = [slot for slot in expected.keys() | found.keys() if expected[slot] != found[slot]]
    if wrong:
        first = min(wrong)
        raise LakeError(
            f"{source.slug}: {len(wrong)} table hours differ from the generator's account, the "
            f"first {first.table} {first.day} {first.hr}: {found[first]} rows in the lake, "
            f"{expected[first]} generated. Please report this."
        )
    return Agreement(len({slot.table for slot in found}), len(found), found.total())


def _rows(lake: Lake, source: Source) -> Counter[Slot]:
    """What the lake itself answers, in one question for all tables."""
    tables = [table.name for table in lake.catalog.tables(source.database)]
    each = (
        f'SELECT \'{name}\', day, hr, count(*) FROM "{source.database}"."{name}" GROUP BY ALL'
        for name in tables
    )
    answer = LakeSql(lake.catalog, lake.storage).query(" UNION ALL ".join(each))
    rows = zip(*(column.to_pylist() for column in answer.columns), strict=True)
    return Counter({Slot(table, day, hr): count for table, day, hr, count in rows})
