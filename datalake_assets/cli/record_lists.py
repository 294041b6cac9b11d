"""Records, and the runs that have some, as a person or a program reads them."""

import sys
from typing import TYPE_CHECKING, Any

from datalake_assets.cli.output import grid, note, print_json, say, show
from datalake_assets.cli.text import moment, number, plain, plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

    from eventlake.lake import Lake
    from eventlake.load.record_log import BatchType
    from eventlake.records.logs import LogFile, RunLog

SHOWN = 20
_STATUSES = ("succeeded", "DUPLICATE", "rejected", "NULL")


def list_runs(lake: "Lake", limit: int | None, as_json: bool) -> None:
    """The runs that have a record log, the newest first, with the numbers of their records."""
    from eventlake.records.logs import count, run_logs

    logs = [log for source in lake.settings.sources for log in run_logs(lake, source)]
    logs.sort(key=lambda log: (log.run.started_at, log.run_id), reverse=True)
    if limit or not as_json:
        logs = logs[: limit or SHOWN]
    counted = [(log, count(lake.for_source(log.source).storage, log.files)) for log in logs]
    if as_json:
        return print_json([_as_dict(log, counts) for log, counts in counted])
    if not logs:
        return note("No record logs yet: `datalake sync` makes one.")
    left = ("started (UTC)", "source", "kind", "state")
    rows = [_row(log, counts) for log, counts in counted]
    show(grid(rows, left, (*_STATUSES, "run"), spare=("NULL", "kind")))


def _as_dict(log: "RunLog", counts: "dict[BatchType, int]") -> dict[str, Any]:
    return {
        "run_id": log.run_id,
        "source": log.source.slug,
        "kind": log.run.kind,
        "state": log.run.state,
        "started_at": log.run.started_at,
        "records": counts,
    }


def _row(log: "RunLog", counts: "dict[BatchType, int]") -> tuple[object, ...]:
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
    lake: "Lake", log: "RunLog", chosen: "Sequence[LogFile]", tables: "Iterable[pa.Table]"
) -> None:
    """Some records of those that were chosen, a line each."""
    from eventlake.records.logs import count

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
    """All that is known of a record, a line for each thing."""
    from datalake_assets.cli.answers import shown

    say(plain(record["identifier"]), style="bold")
    for name, value in record.items():
        if name != "identifier" and value is not None:
            say(f"  {name:<18}{plain(shown(value))}")


def stream_json(tables: "Iterable[pa.Table]") -> None:
    """One document, however many records."""
    import msgspec

    before = "["
    for table in tables:
        for record in table.to_pylist():
            sys.stdout.write(f"{before}\n{msgspec.json.encode(record).decode()}")
            before = ","
    sys.stdout.write("[]\n" if before == "[" else "\n]\n")
