"""`datalake status`: the state of every source."""

from dataclasses import replace
from datetime import datetime
from typing import Any

import typer

from datalake_assets.cli.invocation import AsJson, invocation
from datalake_assets.cli.output import (
    grid,
    moment,
    note,
    number,
    print_json,
    show,
    size,
    span,
)
from datalake_assets.instance.schedules import switched_off
from eventlake.rules import clock
from eventlake.rules.text import plural
from eventlake.status import RunInProgress, SourceStatus, source_status


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
    now = clock.now()
    off = switched_off(lake)
    found = [
        replace(one, next_sync=None) if one.source.id in off else one
        for one in (source_status(lake, source, now) for source in lake.settings.sources)
    ]
    if as_json:
        return print_json([_as_dict(one) for one in found])
    left = ("source", "last sync (UTC)", "status", "next (UTC)")
    right = ("rows", "lag", "files waiting", "size")
    show(grid([_row(one) for one in found], left, right, spare=("size", "rows")))
    for one in found:
        if one.source.id in off:
            note(f"{one.source.slug}: {_SWITCHED_OFF}", style=None)
        for remark in _remarks(one):
            note(f"{one.source.slug}: {remark}", style=None)


_SWITCHED_OFF = (
    "its schedule was switched off in Dagster: no scheduled syncs; switch it on in the UI "
    "(Automation)"
)


def _row(one: SourceStatus) -> tuple[object, ...]:
    last, lag, waiting = one.last_sync, one.lag, one.waiting
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


def _remarks(one: SourceStatus) -> list[str]:
    """Facts that do not fit into a row, or matter only if something is wrong."""
    remarks = [] if one.source.is_scheduled else [_unscheduled(one)]
    remarks += [problem.text for problem in one.problems]
    if one.lease:
        remarks.append(f"running: {one.lease}")
    return remarks + [_running(run, one.at) for run in one.open_runs if run.alive]


def _unscheduled(one: SourceStatus) -> str:
    why = "`schedule` is off" if one.source.enabled else "not enabled"
    return f"{why}: no scheduled syncs"


def _running(run: RunInProgress, now: datetime) -> str:
    facts = run.run.run
    progress = f", {run.days_done} of {plural(run.days, 'day')} published" if run.days else ""
    since = span((now - facts.start_time).total_seconds())
    return f"{run.kind} {facts.run_id} running for {since} by {run.run.holder}{progress}"


def _as_dict(one: SourceStatus) -> dict[str, Any]:
    last, lag, waiting = one.last_sync, one.lag, one.waiting
    return {
        "source": one.source.slug,
        "source_id": one.source.id,
        "enabled": one.source.enabled,
        "last_sync": last.source if last else None,
        "last_load": one.last_load.source if one.last_load else None,
        "next_sync": one.next_sync,
        "loaded_until": one.loaded_until,
        "lag_seconds": None if lag is None else int(lag.total_seconds()),
        "files_waiting": None if waiting.problem else waiting.files,
        "bytes_waiting": None if waiting.problem else waiting.bytes,
        "problem": waiting.problem,
        "moved": one.moved,
        "files_ignored": sum(what.files for what in waiting.ignored),
        "ignored": [str(what) for what in waiting.ignored],
        "to_replay": one.to_replay,
        "damaged": one.damaged,
        "failing": {
            "times": one.failing.facts["failures"],
            "since": one.failing.since,
            "error_code": one.failing.run.error_code or None,
            "error": one.failing.run.error or None,
        }
        if one.failing
        else None,
        "open_problems": [
            {"kind": kind, "since": trouble.since} for kind, trouble in one.troubles.items()
        ],
        "problems": one.problems,
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
