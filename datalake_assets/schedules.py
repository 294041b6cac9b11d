"""Schedules: syncs, with the first sync of a new source, and daily or hourly jobs.

A sync loads everything that is new. So nothing is lost if a tick is missed, and a tick requests no
run while a sync is queued or running.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import dagster as dg
import msgspec

from datalake_assets.assets.running import is_dead
from datalake_assets.instance.schedules import sync_job_name, sync_schedule_name
from eventlake.lake import Lake
from eventlake.runs.context import now
from eventlake.settings.models import Source
from eventlake.state.first_seen import first_sync_due

FIRST_SYNCS = "first_syncs"
_STATUS = dg.DagsterRunStatus
_OVER = (_STATUS.SUCCESS, _STATUS.FAILURE, _STATUS.CANCELED, _STATUS.MANAGED)
_NOT_OVER = [status for status in _STATUS if status not in _OVER]
_MAX_CREATION = timedelta(minutes=10)
"""A run that was created longer ago and never queued is left over from a crashed process."""


def fixed_schedule(
    job: dg.JobDefinition, cron: str, running: bool = False
) -> dg.ScheduleDefinition:
    """A schedule in UTC; switched on in the UI, or with `datalake dev --schedules`."""
    return dg.ScheduleDefinition(
        name=f"{job.name}_schedule",
        job=job,
        cron_schedule=cron,
        execution_timezone="UTC",
        default_status=_schedule_status(running),
        description=job.description,
    )


def _schedule_status(running: bool) -> dg.DefaultScheduleStatus:
    return dg.DefaultScheduleStatus.RUNNING if running else dg.DefaultScheduleStatus.STOPPED


def sync_schedule(
    lake: Lake, source: Source, job: dg.JobDefinition, running: bool = False
) -> dg.ScheduleDefinition:
    """Syncs a source by the schedule in its settings."""

    @dg.schedule(
        name=sync_schedule_name(source),
        job=job,
        cron_schedule=source.schedule,
        execution_timezone=source.schedule_timezone,
        default_status=_schedule_status(running),
        description=f"Loads new raw files of {source.slug}.",
    )
    def schedule(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        moment = context.scheduled_execution_time.astimezone(UTC)
        why = _waits(lake, source, moment) or under_way(lake, source, context.instance, now())
        return dg.SkipReason(why) if why else dg.RunRequest()

    return schedule


def first_syncs(
    lake: Lake, jobs: Mapping[str, dg.JobDefinition], running: bool = False
) -> dg.SensorDefinition:
    """Starts the first sync of new sources, independent of their schedules; `jobs` by id."""
    status = dg.DefaultSensorStatus
    sources = {source.id: source for source in lake.settings.sources if source.id in jobs}

    @dg.sensor(
        name=FIRST_SYNCS,
        jobs=list(jobs.values()),
        minimum_interval_seconds=60,
        default_status=status.RUNNING if running else status.STOPPED,
        description="The first sync of a new source: `first_sync_hours` after it was added.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        begun = set(msgspec.json.decode(context.cursor or "[]", type=list[str]))
        requests: list[dg.RunRequest] = []
        lines: list[str] = []
        for id in sources.keys() - begun:
            source = sources[id]
            try:
                due = first_sync_due(lake.for_source(source).storage, source, now())
            except Exception as error:  # reported by its syncs; the others go on
                lines.append(f"{source.slug} could not be read: {error}")
                continue
            if due is not None and now() < due:
                lines.append(_first(source, due))
                continue
            begun.add(id)
            if due is not None and not under_way(lake, source, context.instance, now()):
                key = f"first sync of {id}, due {due:%Y-%m-%dT%H:%M:%S}"
                requests.append(dg.RunRequest(run_key=key, job_name=jobs[id].name))
        cursor = msgspec.json.encode(sorted(begun)).decode()
        if requests:
            return dg.SensorResult(run_requests=requests, cursor=cursor)
        skip = " ".join(lines) or "Every source has had its first sync."
        return dg.SensorResult(skip_reason=skip, cursor=cursor)

    return sensor


def _waits(lake: Lake, source: Source, moment: datetime) -> str | None:
    """Why it is too early for a sync, if it is."""
    try:
        due = first_sync_due(lake.for_source(source).storage, source, moment)
    except Exception:  # the sync itself reports it
        return None
    return _first(source, due) if due is not None and moment < due else None


def _first(source: Source, due: datetime) -> str:
    return (
        f"{source.slug} is new: its first sync is at {due:%Y-%m-%d %H:%M} UTC. To sync now: "
        f"`datalake sync --source {source.slug}`; `first_sync_hours: 0` switches the wait off."
    )


def under_way(
    lake: Lake, source: Source, instance: dg.DagsterInstance, moment: datetime
) -> str | None:
    """A description of the sync of the source that is queued or running, unless it is dead."""
    runs = dg.RunsFilter(job_name=sync_job_name(source), statuses=_NOT_OVER)
    for record in instance.get_run_records(runs):
        run, made = record.dagster_run, record.create_timestamp.astimezone(UTC)
        left = run.status is _STATUS.NOT_STARTED and moment - made > _MAX_CREATION
        if not left and not _is_known_dead(lake, run):
            return (
                f"Sync {run.run_id.split('-')[0]} of {source.slug} ({run.status.value.lower()} "
                f"since {made:%Y-%m-%d %H:%M} UTC) is not done yet; it loads all files that are "
                "there when it begins, and the next sync loads later ones."
            )
    return None


def _is_known_dead(lake: Lake, run: dg.DagsterRun) -> bool:
    try:
        return is_dead(lake, run)
    except Exception:  # the lake cannot be read, so a run of another machine may be alive
        return False
