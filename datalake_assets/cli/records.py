"""`datalake records`: the outcome of every record of a run."""

import sys
from collections.abc import Iterable, Sequence
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
    plain,
    plural,
    print_json,
    say,
    show,
    shown,
    warn,
)
from eventlake.lake import Lake
from eventlake.load.record_log import SCHEMA, BatchType
from eventlake.records import logs
from eventlake.records.logs import (
    LogFile,
    RunLog,
    check_target,
    count,
    download,
    newest_log,
    run_log,
    run_logs,
    search,
)
from eventlake.records.payloads import redacted, with_payloads
from eventlake.rules.errors import UsageError
from eventlake.rules.suppression import People
from eventlake.runs.archive import archive_storage
from eventlake.state.suppression import Suppression

SHOWN = 20
_STATUSES = ("succeeded", "DUPLICATE", "rejected", "NULL")


def list_runs(lake: Lake, limit: int | None, as_json: bool) -> None:
    """The runs with a record log, the newest first, with their numbers of records."""
    logs = [log for source in lake.settings.sources for log in run_logs(lake, source)]
    logs.sort(key=lambda log: (log.run.started_at, log.run_id), reverse=True)
    if limit or not as_json:
        logs = logs[: limit or SHOWN]
    counted = [(log, count(lake.for_source(log.source).storage, log.files)) for log in logs]
    if as_json:
        return print_json([_as_dict(log, counts) for log, counts in counted])
    if not logs:
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


def show_records(
    lake: Lake, log: RunLog, chosen: Sequence[LogFile], tables: Iterable[pa.Table]
) -> None:
    """Some of the chosen records, one line each."""
    counts = count(lake.storage, log.files)
    kinds = ", ".join(f"{n:,} {t.removeprefix('records_')}" for t, n in counts.items())
    say(
        f"{log.run.kind.capitalize()} {log.run_id} of {log.source.slug}, "
        f"{moment(log.run.started_at)}, {log.run.state}: "
        f"{plural(sum(counts.values()), 'record')}" + (f" ({kinds})" if kinds else "")
    )
    raw = f"{log.source.raw}/"
    rows = [_record_row(record, raw) for table in tables for record in table.to_pylist()]
    if rows:
        names = ("status", "identifier", "table", "partition", f"line in {raw}", "why")
        show(grid(rows, left=names, spare=("partition", "table")))
    if more := sum(counts[kind] for kind in {file.batch_type for file in chosen}) - len(rows):
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

    Without any option, list the runs that have a record log.

    \b
    Examples:
      datalake records
      datalake records --source ios_prod --status rejected
      datalake records --run 1790899200000000000 --id 4f1c9a6e
      datalake records --run 1790899200000000000 --sample 1000 --out sample.csv
    """
    lake = invocation(context).lake()
    types = logs.batch_types(status or ())
    if out is not None and as_json:
        raise UsageError("--out and --json exclude each other: choose one.")
    if out is not None:
        check_target(out)
    if not any((run, source, status, id, sample, out)):
        return list_runs(lake, limit, as_json)
    log = _chosen(lake, run, source)
    lake = lake.for_source(log.source)
    files, people = log.of(types), _suppressed(lake, log)
    if id is not None:
        return _one(lake, log, files, id, out, as_json, people)
    if sample is not None:
        tables = logs.sample(lake.storage, files, sample)
    else:
        tables = logs.read(lake.storage, files)
    tables = redacted(tables, people)
    if limit is not None:
        tables = logs.first(tables, limit)
    if out is not None:
        return _written(download(tables, out), log, out)
    if as_json:
        return stream_json(tables)
    show_records(lake, log, files, logs.first(tables, limit or sample or SHOWN))


def _suppressed(lake: Lake, log: RunLog) -> People | None:
    """The suppressed people, whose data is never shown."""
    suppression = Suppression.of(lake.storage, log.source)
    return suppression.people(lake.storage) if suppression else None


def _chosen(lake: Lake, run: str | None, source: str | None) -> RunLog:
    sources = chosen_sources(lake, source)
    if run is not None:
        return run_log(lake, sources, run)
    if len(sources) > 1:
        raise UsageError(
            "Which run? Give --run, or --source for its newest one "
            f"(sources: {', '.join(s.slug for s in sources)}). `datalake records` lists the runs."
        )
    return newest_log(lake, sources[0])


def _one(
    lake: Lake,
    log: RunLog,
    files: list[LogFile],
    identifier: str,
    out: Path | None,
    as_json: bool,
    people: People | None,
) -> None:
    """The records with one identifier; payloads of loaded ones come from the archive."""
    tables = redacted((table for _, table in search(lake.storage, files, identifier)), people)
    found = [record for table in tables for record in table.to_pylist()]
    if not found:
        warn(
            f"Run {log.run_id} of {log.source.slug} has no such record of {identifier!r}. "
            "`datalake find` searches all runs."
        )
    logs = run_logs(lake, log.source)
    found, problems = with_payloads(
        lake.storage,
        logs,
        found,
        log.source.limits,
        people,
        archive_storage(lake.storage, log.source),
    )
    for problem in problems:
        warn(problem)
    if out is not None:
        return _written(download([pa.Table.from_pylist(found, SCHEMA)], out), log, out)
    if as_json:
        return print_json(found)
    for record in found:
        show_record(record)


def _written(count: int, log: RunLog, out: Path) -> None:
    note(f"Wrote {plural(count, 'record')} of run {log.run_id} to {out}")
