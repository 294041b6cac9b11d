"""A lake in a folder with its settings file and the account of its sample archive."""

from dataclasses import dataclass
from pathlib import Path

from eventlake.catalog.base import Catalog
from eventlake.lake import Lake
from eventlake.sample import IOS_PROD, WEB_SHOP, Account, SampleSpec
from eventlake.settings.file import load_settings
from eventlake.sql import LakeSql
from eventlake.storage import Storage
from tests.support.lakes.jobs import drained
from tests.support.oracles.recount import NUMERIC, ColumnSum, TableSum

SAMPLE = SampleSpec(days=2, events_per_day=80, files_per_day=2, hours=3)


SETTINGS = f"""\
workspace_id: W1
storage: ./data
sources:
  - id: {WEB_SHOP.id}
    slug: {WEB_SHOP.slug}
  - id: {IOS_PROD.id}
    slug: {IOS_PROD.slug}
"""


@dataclass(frozen=True)
class SampleLake:
    """The folder of a lake, with its settings, and the account of its archive."""

    folder: Path
    account: Account

    @property
    def lake(self) -> Lake:
        return Lake.open(load_settings(self.folder / "lake.yaml", {}, self.folder))

    def sync(self, dagster_run_id: str = "") -> None:
        """A sync of every source, without Spark and without Dagster."""
        for source in self.lake.settings.sources:
            drained(self.lake.settings, source, dagster_run_id=dagster_run_id)


@dataclass(frozen=True)
class Written:
    root: Path
    spec: SampleSpec
    account: Account


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
