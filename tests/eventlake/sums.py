"""What the tables of a lake add up to, column by column, as SQL tells it."""

from dataclasses import dataclass
from decimal import Decimal

from eventlake.catalog.base import Catalog
from eventlake.sql import LakeSql
from eventlake.storage import Storage

NUMERIC = ("bigint", "decimal(38,6)")


@dataclass(frozen=True)
class ColumnSum:
    type: str
    nulls: int
    sum: Decimal | int = 0  # of numbers


@dataclass(frozen=True)
class TableSum:
    rows: int
    columns: dict[str, ColumnSum]


def lake_sums(catalog: Catalog, storage: Storage, database: str) -> dict[str, TableSum]:
    """By table name."""
    sql = LakeSql(catalog, storage)
    found = {}
    for table in catalog.tables(database):
        asked = ["count(*)"]
        for column in table.columns:
            asked.append(f'count(*) - count("{column.name}")')
            asked.append(f'sum("{column.name}")' if column.type in NUMERIC else "0")
        answer = sql.query(f'SELECT {", ".join(asked)} FROM "{database}"."{table.name}"')
        rows, *told = (answer.column(place)[0].as_py() for place in range(answer.num_columns))
        found[table.name] = TableSum(
            rows,
            {
                column.name: ColumnSum(column.type, nulls, total or 0)
                for column, nulls, total in zip(table.columns, told[::2], told[1::2], strict=True)
            },
        )
    return found
