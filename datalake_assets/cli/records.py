"""`datalake records`: what became of every single record of a run."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from datalake_assets.cli.invocation import invocation
from datalake_assets.cli.output import note, print_json, warn
from datalake_assets.cli.record_lists import (
    SHOWN,
    list_runs,
    show_record,
    show_records,
    stream_json,
)
from datalake_assets.cli.text import plural

if TYPE_CHECKING:
    from eventlake.lake import Lake
    from eventlake.records.logs import LogFile, RunLog
    from eventlake.rules.suppression import People


def records(
    context: typer.Context,
    run: Annotated[
        str | None, typer.Option(help="The run, by its id or Dagster's. Default: the newest.")
    ] = None,
    source: Annotated[str | None, typer.Option(help="Slug or id.")] = None,
    status: Annotated[
        list[str] | None,
        typer.Option(
            help="succeeded, rejected, NULL, DUPLICATE, suppressed or skipped; may be repeated."
        ),
    ] = None,
    id: Annotated[str | None, typer.Option("--id", help="Only records of this identifier.")] = None,
    sample: Annotated[
        int | None, typer.Option(min=1, help="So many, evenly spread over all.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write them to a file: .csv, .jsonl or .parquet.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help=f"At most so many. Default: {SHOWN} on a terminal.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what became of each record of a run: loaded, duplicate or rejected, and why.

    Without any option, list the runs that have a record log.

    \b
    Examples:
      datalake records
      datalake records --source ios_prod --status rejected
      datalake records --run 1790899200000000000 --id 4f1c9a6e
      datalake records --run 1790899200000000000 --sample 1000 --out sample.csv
    """
    from eventlake.records import logs
    from eventlake.records.download import check_target, download
    from eventlake.records.payloads import redacted
    from eventlake.rules.errors import UsageError

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


def _suppressed(lake: "Lake", log: "RunLog") -> "People | None":
    """Of whom nothing is to be shown, whatever the log has."""
    from eventlake.state.suppression import Suppression

    suppression = Suppression.of(lake.storage, log.source)
    return suppression.people(lake.storage) if suppression else None


def _chosen(lake: "Lake", run: str | None, source: str | None) -> "RunLog":
    from eventlake.records.logs import newest_log, run_log
    from eventlake.rules.errors import UsageError

    sources = lake.settings.sources if source is None else (lake.settings.source(source),)
    if run is not None:
        return run_log(lake, sources, run)
    if len(sources) > 1:
        raise UsageError(
            "Which run? Give --run, or --source for its newest one "
            f"(sources: {', '.join(s.slug for s in sources)}). `datalake records` lists the runs."
        )
    return newest_log(lake, sources[0])


def _one(
    lake: "Lake",
    log: "RunLog",
    files: "list[LogFile]",
    identifier: str,
    out: Path | None,
    as_json: bool,
    people: "People | None",
) -> None:
    """The records of one identifier, with what the archive has of those that were loaded."""
    import pyarrow as pa

    from eventlake.load.record_log import SCHEMA
    from eventlake.records.download import download
    from eventlake.records.logs import run_logs, search
    from eventlake.records.payloads import redacted, with_payloads

    tables = redacted((table for _, table in search(lake.storage, files, identifier)), people)
    found = [record for table in tables for record in table.to_pylist()]
    if not found:
        warn(
            f"Run {log.run_id} of {log.source.slug} has no such record of {identifier!r}. "
            "`datalake find` looks in all runs."
        )
    logs = run_logs(lake, log.source)
    found, problems = with_payloads(lake.storage, logs, found, log.source.limits, people)
    for problem in problems:
        warn(problem)
    if out is not None:
        return _written(download([pa.Table.from_pylist(found, SCHEMA)], out), log, out)
    if as_json:
        return print_json(found)
    for record in found:
        show_record(record)


def _written(count: int, log: "RunLog", out: Path) -> None:
    note(f"Wrote {plural(count, 'record')} of run {log.run_id} to {out}")
