"""`datalake find`: the history of one event."""

from contextlib import suppress
from dataclasses import asdict
from typing import Annotated, Any

import typer

from datalake_assets.cli.invocation import AsJson, SourceOption, chosen_sources, invocation
from datalake_assets.cli.output import fail, moment, note, print_json, say
from eventlake.lake import Lake
from eventlake.records.find import Found, LakeRow, Occurrence
from eventlake.records.find import find as look_for
from eventlake.rules.errors import LakeError
from eventlake.rules.text import plain, plural
from eventlake.runs.plan import plan_sync
from eventlake.state.source_state import read_state


def find(
    context: typer.Context,
    message_id: Annotated[str, typer.Argument(metavar="MESSAGE_ID", help="Exactly as sent.")],
    source: SourceOption = None,
    as_json: AsJson = False,
) -> None:
    """Find an event: its lines in the archive, the runs that read it, and where it is now.

    Record logs have the whole history, but are kept for some days only; the tables show where older
    events are. Exit code 1: the event is nowhere.

    \b
    Examples:
      datalake find ajs-next-1790813781894-ff31290c
      datalake find 4f1c9a6e --source ios_prod --json
    """
    lake = invocation(context).lake()
    sources = chosen_sources(lake, source)
    found = [look_for(lake, one, message_id) for one in sources]
    if as_json:
        print_json(
            {
                "message_id": message_id,
                "found": any(found),
                "sources": [_as_dict(one) for one in found],
            }
        )
    else:
        for one in filter(None, found):
            _show(message_id, one)
    if not any(found):
        fail(_nowhere(lake, message_id, found))
        raise typer.Exit(1)


def _show(message_id: str, one: Found) -> None:
    where = plural(len(one.rows), "row") if one.rows else "not"
    say(f"{plain(message_id)} of {one.source.slug}: {where} in the lake", style="bold")
    for row in one.rows:
        say(f"  {_table(row)}, received {row.received_at:%Y-%m-%d %H:%M:%S.%f}")
        say(f"    {row.data_file}")
    if not one.occurrences:
        note(
            f"No record log has it ({_reach(one)}), so its raw file is unknown. In the tables: "
            + ", ".join(f"written by run {run}" for run in sorted({r.run_id for r in one.rows}))
        )
    for occurrence in one.occurrences:
        _show_occurrence(occurrence)


def _table(row: LakeRow) -> str:
    return f"{row.database}.{row.table_name}, {row.partition}"


def _show_occurrence(one: Occurrence) -> None:
    record, run = one.record, one.log.run
    say(f"{moment(one.when)}  {run.kind} {one.log.run_id}: {record['status']}", style="bold")
    lines = [("raw", f"{record['raw_file']} line {record['raw_line']}")]
    if record["table_name"] is not None:
        lines.append(("table", f"{record['table_name']}, {record['partition']}"))
    if record["data_file"] is not None:
        lines.append(("file", record["data_file"]))
    if one.now is not None:
        other = one.now_in if one.now_in not in (None, record["data_file"]) else None
        lines.append(("now", one.now + (f", which is {other}" if other else "")))
    if record["status_message"] is not None:
        lines.append(("why", record["status_message"]))
    for name, value in lines:
        say(f"  {name:<7}{plain(value)}")


def _as_dict(one: Found) -> dict[str, Any]:
    return {
        "source": one.source.slug,
        "source_id": one.source.id,
        "in_lake": [asdict(row) | {"run_id": row.run_id} for row in one.rows],
        "occurrences": [
            {
                "run_id": occurrence.log.run_id,
                "kind": occurrence.log.run.kind,
                "run_started_at": occurrence.log.run.started_at,
                "batch_type": occurrence.batch_type,
                **{k: v for k, v in occurrence.record.items() if k != "record_payload"},
                "now": occurrence.now,
                "now_in": occurrence.now_in,
            }
            for occurrence in one.occurrences
        ],
        "searched": {
            "logs": one.searched.runs,
            "logs_since": one.searched.since,
            "index_days": one.searched.index_days,
        },
    }


def _reach(one: Found) -> str:
    searched = one.searched
    if searched.since is None:
        return "there is none"
    return f"{plural(searched.runs, 'log')}, back to {moment(searched.since)} UTC"


def _nowhere(lake: Lake, message_id: str, found: list[Found]) -> str:
    lines = [f"No event has the id {message_id!r}. Searched:"]
    for one in found:
        days = one.searched.index_days
        span = f"{days[0]} to {days[-1]}" if days else "none"
        waiting = _waiting(lake, one)
        lines.append(
            f"  {one.source.slug}: record logs ({_reach(one)}), id index and tables "
            f"({plural(len(days), 'day')}: {span}); {waiting}"
        )
    lines.append(
        "Ids are compared exactly as they were sent. Rejected, suppressed and duplicate events are "
        "known only as long as the record log is kept."
    )
    return "\n".join(lines)


def _waiting(lake: Lake, one: Found) -> str:
    """The raw files that may contain it but are not loaded yet."""
    files = 0
    with suppress(LakeError):
        storage = lake.for_source(one.source).storage
        plan = plan_sync(storage, one.source, read_state(storage, one.source.id))
        files = sum(len(unit.files) for unit in plan.units)
    if not files:
        return "no raw files wait to be synced"
    return f"{plural(files, 'raw file')} not synced yet, which may contain it"
