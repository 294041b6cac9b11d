"""`datalake records`: the outcome of every record of a run."""

import sys
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pyarrow as pa
import typer

from datalake_assets.cli.invocation import AsJson, SourceOption, chosen_sources, invocation
from datalake_assets.cli.output import (
    grid,
    moment,
    note,
    number,
    print_json,
    say,
    show,
    shown,
    warn,
)
from eventlake.api import EventLake, Records
from eventlake.api.records import written
from eventlake.load.record_log import BatchType
from eventlake.records import logs
from eventlake.records.logs import RunLog, check_target, download, newest_log
from eventlake.rules.errors import UsageError
from eventlake.rules.text import plain, plural

SHOWN = 20
_STATUSES = ("succeeded", "DUPLICATE", "rejected", "NULL")


def list_runs(my: EventLake, limit: int | None, as_json: bool) -> None:
    """The runs with a record log, the newest first, with their numbers of records."""
    found = my.record_logs(None if as_json and not limit else limit or SHOWN)
    counted = [(records.log, records.counts()) for records in found]
    if as_json:
        return print_json([_as_dict(log, counts) for log, counts in counted])
    if not found:
        return note("No record logs yet: `datalake sync` creates one.")
    left = ("started (UTC)", "source", "kind", "state")
    rows = [_row(log, counts) for log, counts in counted]
    show(grid(rows, left, (*_STATUSES, "run"), spare=("NULL", "kind")))


def _as_dict(log: RunLog, counts: dict[BatchType, int]) -> dict[str, Any]:
    return {
        "run_id": log.run_id,
        "source": log.source.slug,
        "kind": log.run.kind,
        "state": log.run.state,
        "started_at": log.run.started_at,
        "records": counts,
    }


def _row(log: RunLog, counts: dict[BatchType, int]) -> tuple[object, ...]:
    by_status = dict.fromkeys(_STATUSES, 0)
    for batch_type, records in counts.items():
        by_status[batch_type.status] += records
    run = log.run
    return (
        moment(run.started_at),
        log.source.slug,
        run.kind,
        run.state,
        *map(number, by_status.values()),
        log.run_id,
    )


def show_records(records: Records, tables: Iterable[pa.Table], reasons: bool) -> None:
    """Some of the chosen records, one line each; before them the reasons of what is not loaded."""
    log, counts = records.log, records.counts()
    kinds = ", ".join(f"{n:,} {status}" for status, n in records.by_status().items())
    say(
        f"{log.run.kind.capitalize()} {log.run_id} of {log.source.slug}, "
        f"{moment(log.run.started_at)} UTC, {log.run.state}: "
        f"{plural(sum(counts.values()), 'record')}" + (f" ({kinds})" if kinds else "")
    )
    raw = f"{log.source.raw}/"
    if reasons and (found := records.not_loaded()):
        lines = [(r.status, r.reason, r.first.removeprefix(raw), number(r.records)) for r in found]
        left = ("not loaded", "why", f"first line in {raw}")
        show(grid(lines, left=left, right=("records",)))
    rows = [_record_row(record, raw) for table in tables for record in table.to_pylist()]
    if rows:
        names = ("status", "identifier", "table", "partition", f"line in {raw}", "why")
        show(grid(rows, left=names, spare=("partition", "table")))
    if more := sum(counts[kind] for kind in {file.batch_type for file in records.files}) - len(
        rows
    ):
        note(f"… and {more:,} more; --limit N shows more, --out FILE and --json give all")


def _record_row(record: dict[str, Any], raw: str) -> tuple[str, ...]:
    place = f"{record['raw_file']}:{record['raw_line']}"
    return (
        record["status"],
        record["identifier"] if record["identifier"] != place else "",
        record["table_name"] or "",
        record["partition"] or "",
        place.removeprefix(raw),
        record["status_message"] or "",
    )


def show_record(record: dict[str, Any]) -> None:
    """All fields of a record, one line each."""
    say(plain(record["identifier"]), style="bold")
    for name, value in record.items():
        if name != "identifier" and value is not None:
            say(f"  {name:<18}{plain(shown(value))}")


def stream_json(tables: Iterable[pa.Table]) -> None:
    """Print one JSON document without holding all records."""
    before = "["
    for table in tables:
        for record in table.to_pylist():
            sys.stdout.write(f"{before}\n{msgspec.json.encode(record).decode()}")
            before = ","
    sys.stdout.write("[]\n" if before == "[" else "\n]\n")


def records(
    context: typer.Context,
    run: Annotated[
        str | None,
        typer.Option(help="Its id, Dagster's, or latest. Default: the newest."),
    ] = None,
    source: SourceOption = None,
    status: Annotated[
        list[str] | None,
        typer.Option(
            help="succeeded, rejected, NULL, DUPLICATE, suppressed or skipped; may be repeated."
        ),
    ] = None,
    id: Annotated[
        str | None, typer.Option("--id", help="Only records with this identifier.")
    ] = None,
    sample: Annotated[
        int | None, typer.Option(min=1, help="Number of records, evenly spread over all.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write to a file: .csv, .jsonl or .parquet.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help=f"Maximum number. Default: {SHOWN} on a terminal.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the outcome of each record of a run: loaded, duplicate or rejected, and why.

    Without any option, list the runs that have a record log; of a run, what was not loaded comes
    first, with its reasons.

    \b
    Examples:
      datalake records
      datalake records --source ios_prod --status rejected
      datalake records --run 1790899200000000000 --id 4f1c9a6e
      datalake records --run 1790899200000000000 --sample 1000 --out sample.csv
    """
    my = invocation(context).my()
    logs.batch_types(status or ())
    if out is not None and as_json:
        raise UsageError("--out and --json exclude each other: choose one.")
    if out is not None:
        check_target(out)
    if not any((run, source, status, id, sample, out)):
        return list_runs(my, limit, as_json)
    chosen = _chosen(my, run, source).of(*status or ())
    if id is not None:
        return _one(chosen, id, out, as_json)
    tables: Iterable[pa.Table] = chosen if sample is None else chosen.sample(sample)
    overview = not (status or sample or out or as_json)
    if overview:
        tables = chain(chosen.of("rejected", "NULL", "DUPLICATE"), chosen.of("succeeded"))
    if limit is not None:
        tables = logs.first(tables, limit)
    if out is not None:
        return _written(download(tables, out), chosen.log, out)
    if as_json:
        return stream_json(tables)
    show_records(chosen, logs.first(tables, limit or sample or SHOWN), overview)


def _chosen(my: EventLake, run: str | None, source: str | None) -> Records:
    if run is not None:
        return my.records(run, source)
    if source is None and len(my.sources) > 1:
        raise UsageError(
            "Which run? Give --run, or --source for its newest one "
            f"(sources: {', '.join(s.slug for s in my.sources)}). `datalake records` lists the "
            "runs."
        )
    log = newest_log(my.lake, chosen_sources(my.lake, source)[0])
    return Records.of_log(my.lake, log)


def _one(records: Records, identifier: str, out: Path | None, as_json: bool) -> None:
    """The records with one identifier; payloads of loaded ones come from the archive."""
    log = records.log
    found, problems = records.find(identifier)
    if not found:
        warn(
            f"Run {log.run_id} of {log.source.slug} has no such record of {identifier!r}. "
            "`datalake find` searches all runs."
        )
    for problem in problems:
        warn(problem)
    if out is not None:
        return _written(written(found, out), log, out)
    if as_json:
        return print_json(found)
    for record in found:
        show_record(record)


def _written(count: int, log: RunLog, out: Path) -> None:
    note(f"Wrote {plural(count, 'record')} of run {log.run_id} to {out}")
