"""The same runs as elsewhere, with the lake on S3 and its catalog in Glue."""

from pathlib import Path
from typing import Any

import msgspec

from tests.support.lakes.archive import identify, order, page
from tests.support.lakes.placed_runs import PlacedRuns
from tests.support.lakes.retyping import request_type
from tests.support.lakes.runs import Runs
from tests.support.servers.aws import AwsServer

PLACE = "s3://lake-bucket/some/prefix"


class GlueRuns(PlacedRuns):
    def __init__(self, root: Path, aws: AwsServer, **source: Any) -> None:
        aws.bucket("lake-bucket")
        super().__init__(root, PLACE, {"catalog": "glue"}, **source)


def story(runs: Runs) -> None:
    """New tables, new columns, late rows, a replay that empties an hour, and another type."""
    day = runs.archive.day("2026-10-01")
    day.file(
        "a",
        order("m1", "2026-10-01T07:00", n=1, price=1.5),
        order("m2", "2026-10-01T08:00", n=2, tags=["a", "b"]),
        identify("m3", "2026-10-01T07:30", email="a@example.org"),
    )
    runs.sync()
    runs.load(
        "2026-10-02",
        order("m4", "2026-10-01T07:59", n=3, coupon="x"),
        page("m5", "2026-10-02T00:00", **{"the title": "Home", "注册": True}),
        order("m6", "2026-10-02T00:10", n="many"),
        name="b",
    )
    day.file(
        "a",
        order("m1", "2026-10-01T07:00", n=1, price=1.5),
        identify("m3", "2026-10-01T07:30", email="a@example.org"),
    )
    runs.replay("2026-10-01", "2026-10-02")
    request_type(runs, "track_order.n", "string")
    runs.replay("2026-10-01", "2026-10-03", "track_order")


def catalog_entries(runs: Runs) -> dict[str, Any]:
    """All that the catalog says, but for the place of the lake."""
    found: dict[str, Any] = {}
    for database in runs.catalog.databases():
        for table in runs.catalog.tables(database):
            held = runs.catalog.partitions(database, table.name)
            shown = [msgspec.structs.replace(partition, held=()) for partition in held]
            found[table.full_name] = (table, shown)
    return found
