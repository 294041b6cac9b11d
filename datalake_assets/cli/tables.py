"""`datalake tables`: databases, tables, columns."""

from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

import typer

from datalake_assets.cli.invocation import AsJson, invocation
from datalake_assets.cli.output import grid, note, number, print_json, say, show, size
from eventlake.api import Table
from eventlake.rules.names import RESCUED_DATA
from eventlake.rules.text import plain, plural

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
    my = invocation(context).my()
    if "." in (name or ""):
        return _columns(my.table(name or ""), as_json)
    listed = my.tables(name)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = list(pool.map(_summary, listed))
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


def _summary(table: Table) -> dict[str, Any]:
    size = table.size()
    return {
        "database": table.entry.database,
        "table": table.entry.name,
        "event": table.event,
        "columns": len(table.columns),
        "partitions": size.partitions,
        "rows": size.rows if table.is_counted else None,
        "files": size.files if table.is_counted else None,
        "bytes": size.bytes if table.is_counted else None,
        "location": table.entry.location,
    }


def _columns(table: Table, as_json: bool) -> None:
    requested_types = table.requested_types()
    columns: list[dict[str, Any]] = [
        {"name": c.name, "type": c.type, "path": c.path, "partition_key": c.is_key}
        for c in table.columns
    ]
    for column in columns:
        column["wished_type"] = requested_types.get(column["name"])
    if as_json:
        return print_json(columns)
    about = f": {plain(table.event)}" if table.event else ""
    say(f"{table.name}{about}, {plural(len(columns), 'column')}, in {table.entry.location}")
    rows = [(c["name"], c["type"], c["path"] or _not_of_the_event(c)) for c in columns]
    show(grid(rows, left=("column", "type", "path in the event")))
    for name, type in requested_types.items():
        note(f"{name} is requested as {type.sql}: a replay of all days of the table switches it")


def _not_of_the_event(column: dict[str, Any]) -> str:
    """What a column is that has no path in the event."""
    if column["name"] == RESCUED_DATA:
        return "values that fit no column (JSON)"
    return "partition key" if column["partition_key"] else ""
