"""Launches syncs and replays from the command line as Dagster runs, which the UI shows."""

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import dagster as dg

from datalake_assets.assets.keys import (
    NAMES,
    reports,
    table,
)
from datalake_assets.assets.running import run_error
from datalake_assets.component import build
from datalake_assets.instance.dagster_private import NO_COMPUTE_LOGS, keep_connections, list_runs_in
from datalake_assets.instance.home import opened_instance
from datalake_assets.instance.snapshot import (
    Snapshot,
    SourceSnapshot,
    read_snapshot,
    refresh_snapshot,
)
from datalake_assets.preflight import prepare
from datalake_assets.sensors.reload import LOCATION
from eventlake.lake import Lake
from eventlake.rules import clock
from eventlake.rules.clock import FORM
from eventlake.rules.errors import LakeError, UsageError, did_you_mean
from eventlake.rules.types import TableSchema
from eventlake.runs.archive import list_archive
from eventlake.runs.report_history import RunReport, newest_reports
from eventlake.runs.unit import Window
from eventlake.settings.models import Source
from eventlake.state.source_state import SourceState, read_state


def refuse_replay(
    lake: Lake, source: Source, window: Window, tables: tuple[str, ...] | None
) -> list[TableSchema]:
    """The tables of a replay; raises if the request cannot be met."""
    lake = lake.for_source(source)
    state = read_state(lake.storage, source.id)
    _refuse_hours(source, window)
    _refuse_days(source, first_day(lake, source, state), window)
    known = {t: s for t, s in state.tables_of(source).items() if not source.skips(t)}
    for name in tables or ():
        if source.skips(name):
            raise UsageError(
                f"Table {name!r} is skipped (`skip_events` of source {source.slug!r}). To load "
                "its rows, take it off that list; to remove them from the lake, replay all tables."
            )
        if name not in known:
            raise UsageError(
                f"Source {source.slug!r} has no table {name!r}{did_you_mean(name, known) or '.'} "
                f"`datalake tables {source.database}` lists them."
            )
    return [known[name] for name in tables] if tables else list(known.values())


def first_day(lake: Lake, source: Source, state: SourceState) -> date | None:
    """The first day of a source; before its first sync, that of the oldest raw folder."""
    return list_archive(lake.storage, source).start(source, state)


def _refuse_hours(source: Source, window: Window) -> None:
    if not source.date_partition.has_hours and (window.start.hour or window.end.hour):
        raise UsageError(
            f"The tables of {source.slug!r} are partitioned by {source.date_partition}: a replay "
            "begins and ends at midnight. Give days, YYYY-MM-DD."
        )


def _refuse_days(source: Source, first: date | None, window: Window) -> None:
    """Dagster's partitions are the days from the first day of the source to today."""
    asked_first, asked_last = map(date.fromisoformat, window.days)
    today = clock.now().date()
    if first is not None and asked_first < first:
        raise UsageError(
            f"{asked_first} cannot be replayed: the first day of source {source.slug!r} is {first}."
            f" Begin there, or set `start: {asked_first}` for the source in lake.yaml."
        )
    if asked_last > today:
        raise UsageError(
            f"{asked_last} cannot be replayed yet: today is {today} (UTC). End with today, that is "
            f"--to {today + timedelta(days=1)}."
        )


RANGE_TAGS = ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end")
_INTERRUPTS = ("KeyboardInterrupt", "DagsterExecutionInterruptedError")
_TAGS = {"dagster/max_retries": "0"}  # the daemon does not repeat what a user has run


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended; `dagster_run_id` is also in its sync report."""

    dagster_run_id: str
    succeeded: bool
    error: str | None = None
    exit_code: int = 0


def launch_sync(
    lake: Lake,
    source: Source,
    hours: tuple[datetime, datetime] | None = None,
    warnings: bool = True,
) -> Outcome:
    """Sync one source in this process; `warnings=False` keeps warnings off the terminal."""
    job = _definitions(lake).resolve_job_def(NAMES.sync_job(source))
    config = {} if hours is None else _hours(*hours)
    run_config = {
        "ops": {f"load_{source.name}": {"config": config}},
        "loggers": {"console": {"config": {"warnings": warnings}}},
    }
    return execute(job, source, run_config)


def launch_replay(
    lake: Lake,
    source: Source,
    window: Window,
    tables: tuple[str, ...] | None = None,
    accept_changes: bool = False,
) -> Outcome:
    """Replay a range of one source in this process, for some or all tables."""
    chosen = refuse_replay(lake, source, window, tables)
    refresh_snapshot(lake)
    definitions = build(lake, _with_first_day(lake, source, read_snapshot(lake)))
    keys = {NAMES.key(table(schema)) for schema in chosen}
    last = window.end - timedelta(microseconds=1)
    config = {
        **_hours(window.start, window.end),
        "all_tables": tables is None,
        "accept_changes": accept_changes,
    }
    job = definitions.resolve_job_def(NAMES.replay_job(source))
    checks = job.asset_layer.asset_graph.asset_check_keys
    # Without a selection of checks, Dagster adds all checks of the tables, which read the lake.
    job = job.get_subset(
        asset_selection={*keys, NAMES.key(reports(source))},
        asset_check_selection={check for check in checks if check.asset_key in keys},
    )
    return execute(
        job,
        source,
        {"ops": {f"replay_{source.name}_tables": {"config": config}}},
        tags=dict(zip(RANGE_TAGS, (f"{window.start:%Y-%m-%d}", f"{last:%Y-%m-%d}"), strict=True)),
    )


def launch_upkeep(lake: Lake, source: Source) -> Outcome:
    """Run the upkeep of one source in this process."""
    return execute(_definitions(lake).resolve_job_def(NAMES.upkeep_job(source)), source, {})


def report_of_run(lake: Lake, source: Source, outcome: Outcome) -> RunReport | None:
    """The report of a run that has ended; one that failed may have none."""
    recent = islice(newest_reports(lake.for_source(source), {source.id}), 100)
    try:
        return next((run for run in recent if run.dagster_run_id == outcome.dagster_run_id), None)
    except (LakeError, OSError):
        if outcome.succeeded:
            raise
        return None  # show the error of the run, not this one


class DagsterLauncher:
    """Starts the runs of Python's API as the command line does: as Dagster runs."""

    def sync(self, lake: Lake, source: Source) -> RunReport:
        prepare(lake, [source])
        return _ended(lake, source, launch_sync(lake, source))

    def replay(
        self, lake: Lake, source: Source, window: Window, tables: tuple[str, ...] | None
    ) -> RunReport:
        refuse_replay(lake, source, window, tables)
        prepare(lake, [source], replay=True)
        return _ended(lake, source, launch_replay(lake, source, window, tables))


def _ended(lake: Lake, source: Source, outcome: Outcome) -> RunReport:
    report = report_of_run(lake, source, outcome)
    if report is None or not outcome.succeeded:
        error = outcome.error or "it has no report"
        raise LakeError(f"The run {outcome.dagster_run_id} of {source.slug} failed: {error}")
    return report


def _with_first_day(lake: Lake, source: Source, snapshot: Snapshot) -> Snapshot:
    """The snapshot with the first day of a source, also before its first sync."""
    lake = lake.for_source(source)
    known, state = snapshot.of(source.id), read_state(lake.storage, source.id)
    first = first_day(lake, source, state)
    begun = SourceSnapshot(known.start or (f"{first}" if first else None), known.tables)
    return Snapshot({**snapshot.sources, source.id: begun})


def _definitions(lake: Lake) -> dg.Definitions:
    """Without event tables, which take long to define: no job but a replay has them."""
    return build(lake, Snapshot())


def _hours(start: datetime, end: datetime) -> dict[str, str]:
    return {"from_hour": f"{start:{FORM}}", "to_hour": f"{end:{FORM}}"}


def execute(
    job: dg.JobDefinition,
    source: Source,
    run_config: Mapping[str, Any],
    tags: Mapping[str, str] | None = None,
) -> Outcome:
    with _instance() as instance:
        keep_connections(instance)
        list_runs_in(LOCATION, instance)
        result = job.execute_in_process(
            run_config={"loggers": {"console": {"config": {}}}, **run_config},
            instance=instance,
            raise_on_error=False,
            tags={**_TAGS, **(tags or {})},
        )
    if result.success:
        return Outcome(result.run_id, succeeded=True)
    if _was_interrupted(result):
        raise KeyboardInterrupt
    error = run_error(result.all_events)
    return Outcome(result.run_id, False, error.message, error.exit_code)


def _instance() -> AbstractContextManager[dg.DagsterInstance]:
    """The instance of $DAGSTER_HOME, without capture of the output of runs.

    With capture, output would reach the terminal late, and not at all after an interrupt.
    """
    return opened_instance(Path(os.environ["DAGSTER_HOME"]), compute_logs=NO_COMPUTE_LOGS)


def _was_interrupted(result: dg.ExecuteInProcessResult) -> bool:
    """Dagster turns an interrupt into a failed step, or into a run that ends without one."""
    errors = [e.step_failure_data.error for e in result.all_events if e.is_step_failure]
    names = [error.cls_name for error in errors if error]
    return any(name in _INTERRUPTS for name in names)
