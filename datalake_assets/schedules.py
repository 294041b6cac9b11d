"""When syncs are launched: by the schedule of their source, the first one some hours after it came.

A sync takes all that is new, however much. So a tick that was missed is no loss, and one that
comes while a sync is under way asks for nothing: there is never a second one in the queue.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import dagster as dg
import msgspec

from datalake_assets.assets.keys import sync_job_name
from datalake_assets.assets.running import is_dead
from eventlake.lake import Lake
from eventlake.runs.context import now
from eventlake.settings.models import Source
from eventlake.state.first_seen import first_sync_due

FIRST_SYNCS = "first_syncs"
_STATUS = dg.DagsterRunStatus
_OVER = (_STATUS.SUCCESS, _STATUS.FAILURE, _STATUS.CANCELED, _STATUS.MANAGED)
_NOT_OVER = [status for status in _STATUS if status not in _OVER]
_ABOUT_TO_BE = timedelta(minutes=10)
"""A run that was made longer ago and never queued, was left behind by a process that died."""


def sync_schedule(
    lake: Lake, source: Source, job: dg.JobDefinition, running: bool = False
) -> dg.ScheduleDefinition:
    """Switched on in the UI, or with `datalake dev --schedules`."""
    status = dg.DefaultScheduleStatus

    @dg.schedule(
        name=f"{sync_job_name(source)}_schedule",
        job=job,
        cron_schedule=source.schedule,
        execution_timezone=source.schedule_timezone,
        default_status=status.RUNNING if running else status.STOPPED,
        description=f"New raw files of {source.slug} into the lake.",
    )
    def schedule(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        moment = context.scheduled_execution_time.astimezone(UTC)
        why = _waits(lake, source, moment) or under_way(lake, source, context.instance, now())
        return dg.SkipReason(why) if why else dg.RunRequest()

    return schedule


def first_syncs(
    lake: Lake, jobs: Mapping[str, dg.JobDefinition], running: bool = False
) -> dg.SensorDefinition:
    """Syncs a new source when its time has come, whenever its schedule would (`jobs` by id)."""
    status = dg.DefaultSensorStatus
    sources = {source.id: source for source in lake.settings.sources if source.id in jobs}

    @dg.sensor(
        name=FIRST_SYNCS,
        jobs=list(jobs.values()),
        minimum_interval_seconds=60,
        default_status=status.RUNNING if running else status.STOPPED,
        description="The first sync of a source that was added: after two hours, or as it is set.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        begun = set(msgspec.json.decode(context.cursor or "[]", type=list[str]))
        requests: list[dg.RunRequest] = []
        told: list[str] = []
        for id in sources.keys() - begun:
            source = sources[id]
            try:
                due = first_sync_due(lake.for_source(source).storage, source, now())
            except Exception as error:  # others have their turn; its schedule has it told
                told.append(f"{source.slug} could not be looked at: {error}")
                continue
            if due is not None and now() < due:
                told.append(_first(source, due))
                continue
            begun.add(id)
            if due is not None and not under_way(lake, source, context.instance, now()):
                key = f"first sync of {id}, due {due:%Y-%m-%dT%H:%M:%S}"
                requests.append(dg.RunRequest(run_key=key, job_name=jobs[id].name))
        cursor = msgspec.json.encode(sorted(begun)).decode()
        if requests:
            return dg.SensorResult(run_requests=requests, cursor=cursor)
        skip = " ".join(told) or "Every source has had its first sync."
        return dg.SensorResult(skip_reason=skip, cursor=cursor)

    return sensor


def _waits(lake: Lake, source: Source, moment: datetime) -> str | None:
    """Why it is too early for a sync, if it is."""
    try:
        due = first_sync_due(lake.for_source(source).storage, source, moment)
    except Exception:  # a sync that fails tells it: in its report, and to those who are alerted
        return None
    return _first(source, due) if due is not None and moment < due else None


def _first(source: Source, due: datetime) -> str:
    return (
        f"{source.slug} is new: its first sync comes at {due:%Y-%m-%d %H:%M} UTC. To have it now: "
        f"`datalake sync --source {source.slug}`; `first_sync_hours: 0` does without the wait."
    )


def under_way(
    lake: Lake, source: Source, instance: dg.DagsterInstance, moment: datetime
) -> str | None:
    """Which sync of the source is queued or at work, in words; a dead one is not."""
    runs = dg.RunsFilter(job_name=sync_job_name(source), statuses=_NOT_OVER)
    for record in instance.get_run_records(runs):
        run, made = record.dagster_run, record.create_timestamp.astimezone(UTC)
        left = run.status is _STATUS.NOT_STARTED and moment - made > _ABOUT_TO_BE
        if not left and not _is_known_dead(lake, run):
            return (
                f"Sync {run.run_id.split('-')[0]} of {source.slug} ({run.status.value.lower()} "
                f"since {made:%Y-%m-%d %H:%M} UTC) is not done yet; it takes all that is new when "
                "it begins, and the next tick what comes after."
            )
    return None


def _is_known_dead(lake: Lake, run: dg.DagsterRun) -> bool:
    try:
        return is_dead(lake, run)
    except Exception:  # of a run on another machine the lake would know, if it could be read
        return False
