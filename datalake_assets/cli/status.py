"""`datalake status`: how every source stands."""

from datetime import UTC, datetime
from typing import Any

import typer

from datalake_assets.cli.invocation import AsJson, invocation
from datalake_assets.cli.output import err, grid, print_json, show
from datalake_assets.cli.text import headline, moment, number, plural, size, span
from eventlake.status import Interrupted, RunInProgress, SourceStatus, source_status


def status(
    context: typer.Context,
    as_json: AsJson = False,
) -> None:
    """Show the state of every source: last sync, lag, waiting files, failures, runs.

    The lag is the time since the end of the newest hour (of receivedAt) that a sync has loaded.

    \b
    Examples:
      datalake status
      datalake status --json
    """
    lake = invocation(context).lake()
    now = datetime.now(UTC)
    found = [source_status(lake, source, now) for source in lake.settings.sources]
    if as_json:
        return print_json([_as_dict(one, now) for one in found])
    left = ("source", "last sync (UTC)", "status", "next (UTC)")
    right = ("rows", "lag", "files waiting", "size")
    show(grid([_row(one, now) for one in found], left, right, spare=("size", "rows")))
    for one in found:
        for remark in _remarks(one, now):
            err().print(f"{one.source.slug}: {remark}", soft_wrap=True)


def _row(one: SourceStatus, now: datetime) -> tuple[object, ...]:
    last, lag, waiting = one.last_sync, one.lag(now), one.waiting
    return (
        one.source.slug,
        moment(last.started) if last else "never",
        last.source.status if last else "",
        moment(one.next_sync) if one.next_sync else "none",
        number(last.source.row_count if last else None),
        span(lag.total_seconds()) if lag is not None else number(None),
        "?" if waiting.problem else number(waiting.files),
        "?" if waiting.problem else size(waiting.bytes),
    )


def _remarks(one: SourceStatus, now: datetime) -> list[str]:
    """What does not fit into a row, or need not be said when all is well."""
    remarks = [] if one.source.is_scheduled else [_unscheduled(one)]
    if one.failures:
        newest, oldest = one.failures[0], one.failures[-1]
        remarks.append(
            f"failing since {moment(oldest.started)}, {plural(len(one.failures), 'failure')} in a "
            f"row; {newest.source.error_code or ''}: {headline(newest.source.error or '')}"
        )
    if one.waiting.problem:
        remarks.append(one.waiting.problem)
    if one.lease:
        remarks.append(f"at work: {one.lease}")
    remarks += [_running(run, now) for run in one.open_runs]
    remarks += [_interrupted(replay) for replay in one.interrupted]
    if one.requested_types:
        requested = ", ".join(
            f"{column} {type.sql}" for column, type in one.requested_types.items()
        )
        remarks.append(f"types that wait for a replay of all days of their table: {requested}")
    return remarks


def _unscheduled(one: SourceStatus) -> str:
    why = "`schedule` is off" if one.source.enabled else "not enabled"
    return f"{why}: no scheduled syncs"


def _interrupted(one: Interrupted) -> str:
    tables = one.replay.replay.tables
    of = f" of {', '.join(tables)}" if tables else ""
    return (
        f"replay of {one.window}{of} interrupted after {len(one.replay.days)} of "
        f"{plural(one.days, 'day')} (run {one.last_run}); launch it again, and it goes on"
    )


def _running(run: RunInProgress, now: datetime) -> str:
    facts = run.run.run
    progress = f", {run.days_done} of {plural(run.days, 'day')} published" if run.days else ""
    since = span((now - facts.start_time).total_seconds())
    if run.alive:
        return f"{run.kind} {facts.run_id} running for {since} by {run.run.holder}{progress}"
    if run.kind == "upkeep":
        return (
            f"upkeep {facts.run_id}, begun {moment(facts.start_time)}, has died; the next goes on"
        )
    return (
        f"{run.kind} {facts.run_id}, begun {moment(facts.start_time)}, has died{progress}; the "
        "next run writes its report and goes on"
    )


def _as_dict(one: SourceStatus, now: datetime) -> dict[str, Any]:
    last, lag, waiting = one.last_sync, one.lag(now), one.waiting
    return {
        "source": one.source.slug,
        "source_id": one.source.id,
        "enabled": one.source.enabled,
        "last_sync": last.source if last else None,
        "next_sync": one.next_sync,
        "loaded_until": one.loaded_until,
        "lag_seconds": None if lag is None else int(lag.total_seconds()),
        "files_waiting": None if waiting.problem else waiting.files,
        "bytes_waiting": None if waiting.problem else waiting.bytes,
        "problem": waiting.problem,
        "failing": {
            "times": len(one.failures),
            "since": one.failures[-1].started,
            "error_code": one.failures[0].source.error_code or None,
            "error": one.failures[0].source.error or None,
        }
        if one.failures
        else None,
        "lease": {"run_id": one.lease.run_id, "work": one.lease.work, "holder": one.lease.holder}
        if one.lease
        else None,
        "open_runs": [
            {
                "run_id": run.run.run.run_id,
                "kind": run.kind,
                "alive": run.alive,
                "start_time": run.run.run.start_time,
                "days_published": run.days_done if run.days else None,
                "days": run.days or None,
            }
            for run in one.open_runs
        ],
        "interrupted_replays": [
            {
                "run_id": replay.last_run,
                "replay_from": replay.window.start,
                "replay_to": replay.window.end,
                "tables": replay.replay.replay.tables,
                "days_published": len(replay.replay.days),
                "days": replay.days,
            }
            for replay in one.interrupted
        ],
        "wishes": one.requested_types,
    }
