"""Lakes with column types to change and people to suppress."""

from collections.abc import Generator
from typing import Any

import pyarrow as pa

from eventlake.lake import Lake
from eventlake.retype import Target, find_column, parse_type, record_request
from eventlake.rules.names import Naming
from eventlake.rules.suppression import IdKind
from eventlake.runs.context import Published
from eventlake.runs.replay import replay_units
from eventlake.runs.unit import Window
from eventlake.state.manifest import RunKind
from eventlake.state.suppression import WHOLE_LAKE, Entries, change
from eventlake.storage import Storage
from tests.support.lakes.archive import order
from tests.support.lakes.runs import Runs, utc


def lake_of(runs: Runs) -> Lake:
    return Lake(runs.settings, runs.storage, runs.catalog)


def named(runs: Runs, column: str) -> tuple[str, str]:
    """Table and column: `track_order.n` is property `n` of that table, in either naming."""
    table, name = column.split(".")
    columns = [column for column, _, _ in runs.columns(table)]
    return table, next(c for c in (f"properties_{name}", name) if c in columns)


def target(runs: Runs, column: str) -> Target:
    return find_column(lake_of(runs), ".".join((runs.source.database, *named(runs, column))))


def no_lease_is_held(lease: object) -> None:
    raise AssertionError(f"waits for {lease}")


def request_type(runs: Runs, column: str, type: str) -> None:
    """The same as `datalake retype --yes`; the type it has withdraws the request."""
    found, into = target(runs, column), parse_type(type)
    kept = into is found.column.type
    record_request(lake_of(runs), found, None if kept else into, no_lease_is_held)


def seen(runs: Runs, column: str) -> tuple[str, dict[str, Any]]:
    """What a reader sees: the type of a column, and its values by message id."""
    # Here, since a server of forks that has loaded DuckDB complains of it when it ends.
    from eventlake.sql import LakeSql

    table, name = named(runs, column)
    id = "message_id" if runs.source.naming is Naming.NATIVE else "id"
    sql = f"SELECT {id} id, {name} v FROM {runs.source.database}.{table}"
    answer = LakeSql(runs.catalog, runs.storage).query(sql)
    values = answer["v"]
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.timestamp("us")).cast(pa.string())
    types = {c.name: c.type for c in runs.table(table).columns}
    by_id = dict(zip(answer["id"].to_pylist(), values.to_pylist(), strict=True))
    return types[name], by_id


def rescued(runs: Runs, table: str) -> dict[str, str]:
    """What the rows of a table have in `rescued_data`, by message id."""
    rows = runs.rows(table, "message_id", "rescued_data")
    return {r["message_id"]: r["rescued_data"] for r in rows if r["rescued_data"] is not None}


ALL_DAYS = ("2026-10-01", "2026-10-04")


def load_three_days(runs: Runs) -> None:
    """A table of whole numbers, one a day."""
    for day in (1, 2, 3):
        at = f"2026-10-0{day}"
        runs.archive.day(at).file("a", order(f"m{day}", f"{at}T07:00", n=day))
    runs.sync()


NUMBERS = ("bigint", {"m1": 1, "m2": 2, "m3": 3})
TEXTS = ("string", {"m1": "1", "m2": "2", "m3": "3"})


def days_of_a_replay(
    runs: Runs, start: str = "2026-10-01", end: str = "2026-10-04"
) -> Generator[Published, None, None]:
    """The replay as it goes on: each day as soon as it is in the lake, the switch at the end."""
    window = Window(utc(start), utc(end))
    yield from replay_units(runs.context(RunKind.REPLAY, window), window, accept_changes=True)


NOW = utc("2026-10-20")


def suppress(
    storage: Storage, *users: str, visitors: tuple[str, ...] = (), source: str = WHOLE_LAKE
) -> None:
    """These people, and those on the lists already."""

    def added(entries: Entries) -> Entries:
        entries = entries.with_ids(users, IdKind.USER, source, NOW)
        return entries.with_ids(visitors, IdKind.ANONYMOUS, source, NOW)

    change(storage, added, NOW)


def suppress_only(storage: Storage, users: tuple[str, ...], visitors: tuple[str, ...] = ()) -> None:
    """Suppress these people and no others."""

    def replaced(entries: Entries) -> Entries:
        for kind, ids in ((IdKind.USER, users), (IdKind.ANONYMOUS, visitors)):
            entries = entries.without_ids(entries.of(kind).to_pylist(), kind, WHOLE_LAKE)
            entries = entries.with_ids(ids, kind, WHOLE_LAKE, NOW)
        return entries

    change(storage, replaced, NOW)
