"""The partitions of a table as Glue lists them: by day, and large tables in parallel."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from eventlake.catalog.base import Days
from eventlake.catalog.glue.calls import Fields, GlueCalls

_SEGMENTS = 8  # Glue has up to ten of a table


def list_partitions(
    calls: GlueCalls, database: str, name: str, expression: str | None
) -> list[Fields]:
    """All partitions that an expression leaves; in parallel if they are more than one page."""
    arguments: dict[str, Any] = {
        "DatabaseName": database,
        "TableName": name,
        "ExcludeColumnSchema": True,  # which is the table's, and by far the most of the answer
        **({"Expression": expression} if expression else {}),
    }
    about = f"{database}.{name}"
    page = calls.call("get_partitions", about, **arguments)
    if not page.get("NextToken"):
        return _partitions(page)

    def segment(number: int) -> list[Fields]:
        part = {"SegmentNumber": number, "TotalSegments": _SEGMENTS}
        pages = calls.pages("get_partitions", about, Segment=part, **arguments)
        return [one for page in pages for one in _partitions(page)]

    with ThreadPoolExecutor(_SEGMENTS) as pool:
        return [one for found in pool.map(segment, range(_SEGMENTS)) for one in found]


def days_expression(keys: Sequence[str], days: Days | None) -> str | None:
    """What leaves few partitions beside those of the days; Glue compares single keys only."""
    if days is None:
        return None
    first, last = days
    if "year" not in keys:
        return _between("day", first, last)
    parts = zip(("year", "month", "day"), first.split("-"), last.split("-"), strict=True)
    conditions = []
    for key, low, high in parts:
        conditions.append(_between(key, low, high))
        if low != high:  # the keys below it go round
            break
    return " AND ".join(conditions)


def _between(key: str, low: str, high: str) -> str:
    return f"{key} = '{low}'" if low == high else f"{key} >= '{low}' AND {key} <= '{high}'"


def _partitions(page: Fields) -> list[Fields]:
    found: list[Fields] = page.get("Partitions", [])
    return found
