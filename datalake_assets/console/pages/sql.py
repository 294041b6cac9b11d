"""A box for SQL: reads only, within limits."""

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from datalake_assets.console.access import audit
from datalake_assets.console.asked import Asked
from datalake_assets.console.downloads import TYPES, Download, as_file
from eventlake.rules.clock import now
from eventlake.rules.errors import UsageError
from eventlake.sql import SqlLimits

if TYPE_CHECKING:
    from datalake_assets.console.app import Console


LIMITS = SqlLimits(seconds=30, memory="1GB", rows=1_000)
_DOWNLOAD_LIMITS = SqlLimits(seconds=120, memory="1GB", rows=1_000_000)


@dataclass(frozen=True, slots=True)
class SqlPage:
    q: str
    ran: bool
    columns: tuple[str, ...]
    numeric: tuple[bool, ...]
    rows: tuple[tuple[Any, ...], ...]
    more: bool
    seconds: float
    error: str
    limits: SqlLimits
    examples: tuple[str, ...]


def sql(asked: Asked, console: "Console") -> SqlPage | Download:
    q, kind = asked.text("q", 20_000), asked.one_of("download", TYPES)
    began, error, answer = now(), "", pa.table({})
    runs = asked.posted and bool(q)
    if runs and kind:
        audit(asked.user, "download", sql=q, format=kind)
        rows = asked.my.sql(q, _DOWNLOAD_LIMITS, suppressed=False)
        return as_file([rows], rows.schema, "answer", kind)
    if runs:
        audit(asked.user, "sql", sql=q)
        try:
            answer = asked.my.sql(q, LIMITS, suppressed=False)
        except UsageError as wrong:
            error = str(wrong)
    fields = list(answer.schema)
    numbers = (pa.types.is_integer, pa.types.is_decimal, pa.types.is_floating)
    columns = [column[: LIMITS.rows].to_pylist() for column in answer.columns]
    return SqlPage(
        q=q,
        ran=runs and not error,
        columns=tuple(field.name for field in fields),
        numeric=tuple(any(is_a(field.type) for is_a in numbers) for field in fields),
        rows=tuple(zip(*columns, strict=True)),
        more=answer.num_rows > LIMITS.rows,
        seconds=(now() - began).total_seconds(),
        error=error,
        limits=LIMITS,
        examples=_examples(asked),
    )


def _examples(asked: Asked) -> tuple[str, ...]:
    found = [
        "SELECT start_time, status, row_count, duplicates, rejected\n"
        "FROM __segment_datalake.sync_reports\nWHERE type = 'source'\n"
        "ORDER BY start_time DESC\nLIMIT 20"
    ]
    own = {source.database for source in asked.my.sources}
    databases = [one for one in asked.my.databases() if one in own]
    for table in islice(asked.my.tables(databases[0]) if databases else (), 1):
        keys = table.entry.partition_keys
        found.append(
            f"SELECT {keys[0]}, count(*) AS rows\nFROM {table.name}\nGROUP BY ALL\nORDER BY 1"
        )
    return tuple(found)
