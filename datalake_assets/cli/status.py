"""`datalake status`: the state of every source."""

from dataclasses import replace
from datetime import datetime
from typing import Any

import typer

from datalake_assets.cli.invocation import AsJson, invocation
from datalake_assets.cli.output import (
    grid,
    headline,
    moment,
    note,
    number,
    print_json,
    show,
    size,
    span,
)
from datalake_assets.instance.schedules import switched_off
from eventlake.alerts.wording import MessageWriter
from eventlake.rules import clock
from eventlake.rules.text import plural
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
    now = clock.now()
    off = switched_off(lake)
    found = [
        replace(one, next_sync=None) if one.source.id in off else one
        for one in (source_status(lake, source, now) for source in lake.settings.sources)
    ]
    if as_json:
        return print_json([_as_dict(one, now) for one in found])
    left = ("source", "last sync (UTC)", "status", "next (UTC)")
    right = ("rows", "lag", "files waiting", "size")
    show(grid([_row(one, now) for one in found], left, right, spare=("size", "rows")))
    for one in found:
        if one.source.id in off:
            note(f"{one.source.slug}: {_SWITCHED_OFF}", style=None)
        for remark in _remarks(one, now):
            note(f"{one.source.slug}: {remark}", style=None)


_SWITCHED_OFF = (
    "its schedule is off in Dagster: no scheduled syncs; switch it on in the UI (Automation), or "
    "start the UI with `datalake dev --schedules`"
)


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
    """Facts that do not fit into a row, or matter only if something is wrong."""
    remarks = [] if one.source.is_scheduled else [_unscheduled(one)]
    if one.failing:
        run, times = one.failing.run, plural(int(one.failing.facts["failures"]), "failure")
        remarks.append(
            f"failing since {moment(one.failing.since)}, {times} in a row; "
            f"{run.error_code}: {headline(run.error)}"
        )
    writer = MessageWriter(one.source, now)
    others = {kind: trouble for kind, trouble in one.troubles.items() if trouble != one.failing}
    for kind, trouble in others.items():
        title = writer.title(kind, trouble).removeprefix(f"{one.source.slug}: ")
        remarks.append(f"since {moment(trouble.since)}: {title}")
    if one.waiting.problem:
        remarks.append(one.waiting.problem)
    remarks += [f"not loaded: {what}" for what in one.waiting.ignored if not what.expected]
    if one.moved:
        remarks.append(one.moved)
    if load := _rejecting(one):
        remarks.append(load)
    remarks += one.to_replay
    remarks += one.damaged
    if one.lease:
        remarks.append(f"running: {one.lease}")
    remarks += [_running(run, now) for run in one.open_runs]
    remarks += [_interrupted(replay) for replay in one.interrupted]
    if one.requested_types:
        requested = ", ".join(
            f"{column} {type.sql}" for column, type in one.requested_types.items()
        )
        remarks.append(f"types that wait for a replay of all days of their table: {requested}")
    return remarks


def _rejecting(one: SourceStatus) -> str | None:
    """Whether the last sync that had rows rejected one in a hundred of them, or more."""
    load = one.last_load
    if load is None or 100 * load.source.rejected < load.source.rows_in:
        return None
    share = load.source.rejected / load.source.rows_in
    return (
        f"{number(load.source.rejected)} of {number(load.source.rows_in)} rows ({share:.0%}) "
        f"rejected by the sync of {moment(load.started)}; "
        f"`datalake records --run {load.run_id} --status rejected` shows them"
    )


def _unscheduled(one: SourceStatus) -> str:
    why = "`schedule` is off" if one.source.enabled else "not enabled"
    return f"{why}: no scheduled syncs"


def _interrupted(one: Interrupted) -> str:
    tables = one.replay.replay.tables
    of = f" of {', '.join(tables)}" if tables else ""
    return (
        f"replay of {one.window}{of} interrupted after {len(one.replay.days)} of "
        f"{plural(one.days, 'day')} (run {one.last_run}); launch it again to continue"
    )


def _running(run: RunInProgress, now: datetime) -> str:
    facts = run.run.run
    progress = f", {run.days_done} of {plural(run.days, 'day')} published" if run.days else ""
    since = span((now - facts.start_time).total_seconds())
    if run.alive:
        return f"{run.kind} {facts.run_id} running for {since} by {run.run.holder}{progress}"
    if run.kind == "upkeep":
        return (
            f"upkeep {facts.run_id}, begun {moment(facts.start_time)}, crashed; the next continues"
        )
    return (
        f"{run.kind} {facts.run_id}, begun {moment(facts.start_time)}, crashed{progress}; the next "
        "run writes its report and continues"
    )


def _as_dict(one: SourceStatus, now: datetime) -> dict[str, Any]:
    last, lag, waiting = one.last_sync, one.lag(now), one.waiting
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
