"""Changes made to a lake by hand: in the catalog, whichever it is, and to its files."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec

from eventlake.catalog.base import Catalog, CatalogColumn, CatalogPartition, CatalogTable
from eventlake.catalog.pages import Month
from eventlake.checks.published import TableChecks
from eventlake.checks.repair import CatalogRepair, repair_catalog
from eventlake.rules import paths
from eventlake.runs.verify import CheckResult
from eventlake.storage.documents import decode, encode
from tests.support.lakes.archive import identify, order
from tests.support.lakes.glue_runs import PLACE, GlueRuns
from tests.support.lakes.retyping import lake_of, no_lease_is_held
from tests.support.lakes.runs import Runs
from tests.support.servers.aws import AwsServer

Columns = list[CatalogColumn]
Held = list[CatalogPartition]
Values = tuple[str, ...]


class HandOnFiles:
    """Edits the documents of the embedded catalog."""

    def __init__(self, runs: Runs) -> None:
        self.runs = runs

    def columns(self, table: str, change: Callable[[Columns], Columns]) -> None:
        entry = self.runs.table(table)
        self._put(msgspec.structs.replace(entry, columns=tuple(change(list(entry.columns)))))

    def move(self, table: str, location: str) -> None:
        self._put(msgspec.structs.replace(self.runs.table(table), location=location))

    def drop(self, table: str) -> None:
        self.runs.storage.delete_folder(paths.catalog_table("shop", table))

    def unregister(self, table: str, values: Values) -> None:
        self._month(table, values, lambda held: [p for p in held if p.values != values])

    def register(self, table: str, values: Values, location: str) -> None:
        new = CatalogPartition(values, location, version=-1)
        self._month(table, values, lambda held: [*held, new])

    def move_partition(self, table: str, values: Values, location: str) -> None:
        def moved(one: CatalogPartition) -> CatalogPartition:
            return msgspec.structs.replace(one, location=location) if one.values == values else one

        self._month(table, values, lambda held: list(map(moved, held)))

    def _put(self, entry: CatalogTable) -> None:
        self.runs.storage.write(paths.catalog_table_file("shop", entry.name), encode(entry))

    def _month(self, table: str, values: Values, change: Callable[[Held], Held]) -> None:
        retyped = self.runs.table(table).retyped
        path = f"{paths.catalog_months('shop', table, retyped)}/{values[0][:7]}.json"
        month = decode(self.runs.storage.read(path) or b"", Month, path)
        partitions = tuple(change(list(month.partitions)))
        self.runs.storage.write(path, encode(msgspec.structs.replace(month, partitions=partitions)))


class HandOnGlue:
    """Calls Glue."""

    def __init__(self, runs: GlueRuns, aws: AwsServer) -> None:
        self.runs, self.glue = runs, aws.client("glue")

    def columns(self, table: str, change: Callable[[Columns], Columns]) -> None:
        columns = change(list(self.runs.table(table).columns))
        given = [{"Name": c.name, "Type": c.type, "Comment": c.comment} for c in columns]
        self._update(table, Columns=given)

    def move(self, table: str, location: str) -> None:
        self._update(table, Location=f"{PLACE}/{location}")

    def drop(self, table: str) -> None:
        self.glue.delete_table(DatabaseName="shop", Name=table)

    def unregister(self, table: str, values: Values) -> None:
        self.glue.delete_partition(
            DatabaseName="shop", TableName=table, PartitionValues=list(values)
        )

    def register(self, table: str, values: Values, location: str) -> None:
        stored = self._table(table)["StorageDescriptor"] | {"Location": f"{PLACE}/{location}"}
        wanted = {"Values": list(values), "StorageDescriptor": stored}
        self.glue.create_partition(DatabaseName="shop", TableName=table, PartitionInput=wanted)

    def move_partition(self, table: str, values: Values, location: str) -> None:
        where = {"DatabaseName": "shop", "TableName": table}
        got = self.glue.get_partition(**where, PartitionValues=list(values))["Partition"]
        wanted = {key: got[key] for key in ("Values", "StorageDescriptor", "Parameters")}
        wanted["StorageDescriptor"]["Location"] = f"{PLACE}/{location}"
        self.glue.update_partition(**where, PartitionValueList=list(values), PartitionInput=wanted)

    def _table(self, table: str) -> dict[str, Any]:
        found: dict[str, Any] = self.glue.get_table(DatabaseName="shop", Name=table)["Table"]
        return found

    def _update(self, table: str, **stored: Any) -> None:
        got = self._table(table)
        known = ("Name", "Description", "TableType", "PartitionKeys", "Parameters")
        wanted = {key: got[key] for key in known if key in got}
        wanted["StorageDescriptor"] = got["StorageDescriptor"] | stored
        self.glue.update_table(DatabaseName="shop", TableInput=wanted, SkipArchive=True)


Hand = HandOnFiles | HandOnGlue
Results = dict[tuple[str, str], CheckResult]
"""By table and check."""


class Checked:
    """A lake, changes made to it by hand, and the results of its checks."""

    def __init__(self, runs: Runs, hand: Hand) -> None:
        self.runs, self.hand = runs, hand
        self.waited = 0

    def results(
        self, now: datetime | None = None, meanwhile: Callable[[], object] = lambda: None
    ) -> Results:
        def wait(_: float) -> None:
            self.waited += 1
            meanwhile()

        checks = TableChecks(lake_of(self.runs), self.runs.source, now or datetime.now(UTC), wait)
        return {(r.table.removeprefix("shop."), r.check): r for r in checks.run()}

    def failed(self) -> dict[str, list[str]]:
        """What did not pass of what is an error, as `table.check`, with its first problems."""
        return {
            f"{table}.{check}": list(result.evidence["first_problems"])
            for (table, check), result in self.results().items()
            if not result.passed and check != "schema_change"
        }


def with_history(empty: Checked) -> Checked:
    """Three hours of orders, the second of two files, and one table beside."""
    runs = empty.runs
    runs.load(
        "2026-10-01",
        order("m1", "2026-10-01T07:00", n=1, price=1.5),
        order("m2", "2026-10-01T08:00", n=2),
        identify("m3", "2026-10-01T07:30", email="a@example.org"),
    )
    runs.load(
        "2026-10-02",
        order("m4", "2026-10-01T08:59", n=3, coupon="x"),
        order("m5", "2026-10-02T00:10", n=4),
        name="b",
    )
    return empty


def mend(checked: Checked) -> CatalogRepair:
    return repair_catalog(lake_of(checked.runs), checked.runs.source, no_lease_is_held)


def columns_and_places(described: dict[str, Any]) -> dict[str, Any]:
    """What readers depend on, of all that a catalog says."""
    return {
        name: (entry.columns, entry.location, [(p.values, p.location, p.rows) for p in partitions])
        for name, (entry, partitions) in described.items()
    }


ORDERS = CatalogTable(
    database="shop",
    name="track_order",
    columns=(CatalogColumn("message_id", "string", "/messageId"),),
    partition_keys=("day", "hr"),
    location="segment-data/data/S1/segment_type=track_order",
    comment="Order",
)
HOUR = ("2026-10-01", "07")


def at(location: str, version: int, values: tuple[str, ...] = HOUR) -> CatalogPartition:
    return CatalogPartition(values, location, version, rows=3, bytes=100, files=1)


def locations(catalog: Catalog) -> list[str]:
    return [partition.location for partition in catalog.partitions("shop", "track_order")]
