"""`datalake tables`: databases, tables, columns."""

from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

import typer

from datalake_assets.cli.invocation import AsJson, invocation
from datalake_assets.cli.output import (
    grid,
    note,
    number,
    plain,
    plural,
    print_json,
    say,
    show,
    size,
)
from eventlake.catalog.base import Catalog, CatalogTable
from eventlake.lake import Lake
from eventlake.rules.errors import UsageError, did_you_mean
from eventlake.rules.names import RESCUED_DATA
from eventlake.rules.types import LakeType
from eventlake.state.source_state import read_state

_AT_ONCE = 16  # tables whose partitions are counted in parallel, for remote catalogs


def tables(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="DB[.TABLE]", help="A database, or one of its tables.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List databases and tables; with DB.TABLE, the columns of a table.

    \b
    Examples:
      datalake tables
      datalake tables ios_prod
      datalake tables ios_prod.track_order_completed --json
    """
    lake = invocation(context).lake()
    catalog = lake.catalog
    database, _, table = (name or "").partition(".")
    if table:
        found_table = _table(catalog, database, table)
        return _columns(found_table, _requested_types(lake, found_table), as_json)
    databases = [_database(catalog, database)] if database else catalog.databases()
    listed = [one for place in databases for one in catalog.tables(place)]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = list(pool.map(lambda one: _summary(catalog, one), listed))
    if as_json:
        return print_json(found)
    if not found:
        return note("No tables yet: `datalake sync` creates them.")
    columns = ("columns", "partitions", "rows", "files")
    rows = [
        (one["database"], one["table"], *(number(one[c]) for c in columns), size(one["bytes"]))
        for one in found
    ]
    spare = ("files", "partitions", "columns")
    show(grid(rows, left=("database", "table"), right=(*columns, "size"), spare=spare))


def _summary(catalog: Catalog, table: CatalogTable) -> dict[str, Any]:
    partitions = catalog.partitions(table.database, table.name)
    # Only event tables count their rows in the catalog.
    counted = table.format == "parquet"
    return {
        "database": table.database,
        "table": table.name,
        "event": table.comment,
        "columns": len(table.columns) + len(table.partition_keys),
        "partitions": len(partitions),
        "rows": sum(p.rows for p in partitions) if counted else None,
        "files": sum(p.files for p in partitions) if counted else None,
        "bytes": sum(p.bytes for p in partitions) if counted else None,
        "location": table.location,
    }


def _columns(table: CatalogTable, requested_types: dict[str, LakeType], as_json: bool) -> None:
    columns: list[dict[str, Any]] = [
        {"name": c.name, "type": c.type, "path": c.comment, "partition_key": False}
        for c in table.columns
    ]
    columns += [
        {"name": key, "type": "string", "path": "", "partition_key": True}
        for key in table.partition_keys
    ]
    for column in columns:
        column["wished_type"] = requested_types.get(column["name"])
    if as_json:
        return print_json(columns)
    about = f": {plain(table.comment)}" if table.comment else ""
    say(f"{table.full_name}{about}, {plural(len(columns), 'column')}, in {table.location}")
    rows = [(c["name"], c["type"], c["path"] or _not_of_the_event(c)) for c in columns]
    show(grid(rows, left=("column", "type", "path in the event")))
    for name, type in requested_types.items():
        note(f"{name} is requested as {type.sql}: a replay of all days of the table switches it")


def _not_of_the_event(column: dict[str, Any]) -> str:
    """What a column is that has no path in the event."""
    if column["name"] == RESCUED_DATA:
        return "values that fit no column (JSON)"
    return "partition key" if column["partition_key"] else ""


def _requested_types(lake: Lake, table: CatalogTable) -> dict[str, LakeType]:
    """The types requested for columns of the table."""
    sources = lake.settings.sources
    states = (read_state(lake.for_source(source).storage, source.id) for source in sources)
    requested = (state.requested_types.get(table.full_name) for state in states)
    return next(filter(None, requested), {})


def _database(catalog: Catalog, name: str) -> str:
    known = catalog.databases()
    if name in known:
        return name
    listed = ", ".join(known) or "none yet; `datalake sync` creates them"
    raise UsageError(
        f"There is no database {name!r}{did_you_mean(name, known)} (databases: {listed})."
    )


def _table(catalog: Catalog, database: str, name: str) -> CatalogTable:
    found = catalog.table(_database(catalog, database), name)
    if found is None:
        known = [table.name for table in catalog.tables(database)]
        raise UsageError(
            f"Database {database} has no table {name!r}{did_you_mean(name, known) or '.'} "
            f"`datalake tables {database}` lists its tables."
        )
    return found
