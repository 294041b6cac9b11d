"""`datalake tables`: databases, tables, columns."""

from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

import typer

from datalake_assets.cli.invocation import AsJson, invocation
from datalake_assets.cli.output import grid, note, number, print_json, say, show, size
from eventlake.api import Table
from eventlake.rules.errors import UsageError
from eventlake.rules.names import RESCUED_DATA
from eventlake.rules.text import percent, plain, plural

_AT_ONCE = 16  # tables whose partitions are counted in parallel, for remote catalogs


def tables(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="DB[.TABLE]", help="A database, or one of its tables.")
    ] = None,
    columns: Annotated[
        bool, typer.Option("--columns", help="Fill rates, distinct values, first run of columns.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List databases and tables; with DB.TABLE, the columns of a table.

    --columns adds how many rows have a value, from the footers of the newest 30 days, and, from the
    newest rows, how many values differ and how many of a field went to rescued_data.

    \b
    Examples:
      datalake tables
      datalake tables ios_prod
      datalake tables ios_prod.track_order_completed --columns
    """
    my = invocation(context).my()
    if "." in (name or ""):
        return _columns(my.table(name or ""), columns, as_json)
    if columns:
        raise UsageError("`--columns` is about one table: `datalake tables DB.TABLE --columns`.")
    listed = my.tables(name)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = list(pool.map(_summary, listed))
    if as_json:
        return print_json(found)
    if not found:
        return note("No tables yet: `datalake sync` creates them.")
    counts = ("columns", "partitions", "rows", "files")
    rows = [
        (one["database"], one["table"], *(number(one[c]) for c in counts), size(one["bytes"]))
        for one in found
    ]
    spare = ("files", "partitions", "columns")
    show(grid(rows, left=("database", "table"), right=(*counts, "size"), spare=spare))


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


def _columns(table: Table, with_values: bool, as_json: bool) -> None:
    requested_types = table.requested_types()
    columns: list[dict[str, Any]] = [
        {"name": c.name, "type": c.type, "path": c.path, "partition_key": c.is_key}
        for c in table.columns
    ]
    for column in columns:
        column["wished_type"] = requested_types.get(column["name"])
    if with_values:
        _add_values(table, columns)
    if as_json:
        return print_json(columns)
    about = f": {plain(table.event)}" if table.event else ""
    say(f"{table.name}{about}, {plural(len(columns), 'column')}, in {table.entry.location}")
    rows = [(c["name"], c["type"], c["path"] or _not_of_the_event(c)) for c in columns]
    left, right = ("column", "type", "path in the event"), tuple[str, ...]()
    if with_values:
        right = ("filled", "distinct", "rescued", "added by run")
        rows = [(*row, *_values(c)) for row, c in zip(rows, columns, strict=True)]
    show(grid(rows, left=left, right=right, spare=("added by run", "path in the event")))
    for name, type in requested_types.items():
        note(f"{name} is requested as {type.sql}: a replay of all days of the table switches it")


def _add_values(table: Table, columns: list[dict[str, Any]]) -> None:
    fill, found, added = table.fill(), table.profile(), table.added_columns()
    silent = set(fill.silent())
    for column in columns:
        name = column["name"]
        values, run = found.columns[name], added.get(name)
        column |= {
            "filled": None if column["partition_key"] else fill.of(name),
            "silent": name in silent,
            "newest_rows": values.rows,
            "distinct": values.distinct,
            "rescued": values.rescued,
            "added_by_run": run.run_id if run else None,
        }


def _values(column: dict[str, Any]) -> tuple[str, ...]:
    filled = "" if column["filled"] is None else percent(column["filled"])
    if column["silent"]:
        filled = f"{filled}, silent"
    rescued = number(column["rescued"]) if column["rescued"] else ""
    return filled, number(column["distinct"]), rescued, column["added_by_run"] or ""


def _not_of_the_event(column: dict[str, Any]) -> str:
    """What a column is that has no path in the event."""
    if column["name"] == RESCUED_DATA:
        return "values that fit no column (JSON)"
    return "partition key" if column["partition_key"] else ""
