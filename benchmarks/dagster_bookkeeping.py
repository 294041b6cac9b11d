"""What Dagster's own bookkeeping costs: time and room for each event, in SQLite and in Postgres.

    python -m benchmarks.dagster_bookkeeping [--tables 200] [--syncs 3]

Books what syncs book that touch every table, with the metadata that they carry, and nothing else:
no file is read or written. Postgres is measured if $DAGSTER_PG_URL names an empty database.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg

from datalake_assets.assets import metadata
from datalake_assets.assets.events import check_evaluation
from datalake_assets.assets.keys import table_key
from datalake_assets.instance.home import URL_VARIABLE, VARIABLE
from datalake_assets.instance.storage import Bookkeeping
from datalake_assets.instance.terminal_log import console
from eventlake.rules.counts import TableReport
from eventlake.rules.names import Naming
from eventlake.rules.types import Column, LakeType, TableSchema
from eventlake.runs.resolve import standard_columns
from eventlake.runs.verify import CHECKS, CheckResult

COLUMNS = 50  # beside the standard ones
DAY = "2026-10-01"
INSTANCE = f"""\
storage: {{custom: {{module: {Bookkeeping.__module__}, class: Bookkeeping, config: {{}}}}}}
telemetry: {{enabled: false}}
"""


@dataclass(frozen=True)
class Cost:
    """Of one sync after another."""

    kept_in: str
    events: int  # of one sync
    seconds: list[float]
    cpu_seconds: float  # of this process, for all of them
    bytes: int  # of all of them

    def row(self) -> str:
        per_event = min(self.seconds) / self.events * 1000
        size = self.bytes / len(self.seconds) / self.events
        each = " / ".join(f"{second:.1f}" for second in self.seconds)
        cpu = self.cpu_seconds / len(self.seconds) / self.events * 1000
        cells = (self.kept_in, f"{self.events:,}", each, f"{per_event:.1f}", f"{cpu:.1f}")
        return f"| {' | '.join(cells)} | {size:,.0f} |"


def sync_of(tables: int) -> dg.JobDefinition:
    """A job that books what a sync of so many tables books."""
    schemas = [_schema(number) for number in range(tables)]

    @dg.op(out=dg.Out(dg.Nothing))
    def load() -> Iterator[Any]:
        for schema in schemas:
            report = TableReport(schema.table, schema.name, rows_in=1000, row_count=990)
            shown = metadata.table_day(schema, report, DAY, 990, 990_000)
            yield dg.AssetMaterialization(table_key(schema), partition=DAY, metadata=shown)
        for schema in schemas:
            evidence = {"rows": 990, "distinct_ids": 990, "duplicates_dropped": 10}
            for check in CHECKS:
                yield check_evaluation(CheckResult(schema.key, check, True, evidence))
        yield dg.Output(None)

    @dg.job(executor_def=dg.in_process_executor, logger_defs={"console": console})
    def sync() -> None:
        load()

    return sync


def _schema(number: int) -> TableSchema:
    own = tuple(
        Column(f"properties_{n}", LakeType.STRING, f"/properties/{n}") for n in range(COLUMNS)
    )
    columns = standard_columns(Naming.NATIVE) + own
    return TableSchema(f"track_{number}", "shop", f"track_{number}", f"Event {number}", columns)


def measure(kept_in: str, home: Path, tables: int, syncs: int) -> Cost:
    """Book some syncs; the first finds the tables of the database made."""
    (home / "dagster.yaml").write_text(INSTANCE)
    job, seconds = sync_of(tables), list[float]()
    with dg.DagsterInstance.from_config(str(home)) as instance:
        before, cpu = _size(home), time.process_time()
        for _ in range(syncs):
            began = time.monotonic()
            result = job.execute_in_process(instance=instance)
            seconds.append(time.monotonic() - began)
        spent = time.process_time() - cpu
        events = len(instance.all_logs(result.run_id))
        return Cost(kept_in, events, seconds, spent, _size(home) - before)


def _size(home: Path) -> int:
    """Of the database, wherever it is."""
    url = os.environ.get(URL_VARIABLE)
    if not url:
        return sum(file.stat().st_size for file in home.rglob("*.db*"))
    import psycopg2  # type: ignore[import-untyped]

    with closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT pg_database_size(current_database())")
        return int(cursor.fetchone()[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--syncs", type=int, default=3)
    asked = parser.parse_args()
    url = os.environ.pop(URL_VARIABLE, None)
    print("| kept in | events a sync | seconds | ms an event | of it our CPU | bytes an event |")
    print("|---|---|---|---|---|---|")
    for kept_in, place in (("SQLite", None), ("Postgres", url)):
        if kept_in == "Postgres" and place is None:
            print(f"Postgres was not measured: ${URL_VARIABLE} is not set.", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory() as folder:
            os.environ[VARIABLE] = folder
            if place is not None:
                os.environ[URL_VARIABLE] = place
            print(measure(kept_in, Path(folder), asked.tables, asked.syncs).row(), flush=True)
    print(f"\nload of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
