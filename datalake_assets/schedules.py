"""What starts runs: schedules of syncs and other jobs, first syncs, arrivals of raw files.

A sync loads everything that is new. So nothing is lost if a tick is missed, and a tick requests no
run while a sync is queued or running.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import dagster as dg
import msgspec

from datalake_assets.assets.events import VERSION, RunEvents
from datalake_assets.assets.keys import NAMES, Names, sync
from datalake_assets.assets.running import AssetJob, is_dead
from eventlake.lake import Lake
from eventlake.runs.context import now
from eventlake.settings.models import Source
from eventlake.state.source_state import first_sync_due

FIRST_SYNCS = "first_syncs"
_STATUS = dg.DagsterRunStatus
_OVER = (_STATUS.SUCCESS, _STATUS.FAILURE, _STATUS.CANCELED, _STATUS.MANAGED)
_NOT_OVER = [status for status in _STATUS if status not in _OVER]
_MAX_CREATION = timedelta(minutes=10)
"""A run that was created longer ago and never queued is left over from a crashed process."""


def fixed_schedule(job: AssetJob, cron: str, running: bool) -> dg.ScheduleDefinition:
    """A schedule in UTC. It can be switched in the UI."""
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
    lake: Lake,
    source: Source,
    job: AssetJob,
    names: Names = NAMES,
) -> dg.ScheduleDefinition:
    """Syncs a source by the schedule in its settings."""

    @dg.schedule(
        name=f"{names.sync_job(source)}_schedule",
        job=job,
        cron_schedule=source.due,
        execution_timezone=source.schedule_timezone,
        default_status=_schedule_status(running=True),
        description=f"Loads new raw files of {source.slug}.",
    )
    def schedule(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        moment = context.scheduled_execution_time.astimezone(UTC)
        why = _waits(lake, source, moment) or under_way(
            lake, source, context.instance, now(), names
        )
        return dg.SkipReason(why) if why else dg.RunRequest()

    return schedule


def first_syncs(
    lake: Lake, jobs: Mapping[str, AssetJob], names: Names = NAMES
) -> dg.SensorDefinition:
    """Starts the first sync of new sources, independent of their schedules; `jobs` by id."""
    sources = {source.id: source for source in lake.settings.sources if source.id in jobs}

    @dg.sensor(
        name=names.of(FIRST_SYNCS),
        jobs=list(jobs.values()),
        minimum_interval_seconds=60,
        default_status=dg.DefaultSensorStatus.RUNNING,
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
            if due and not under_way(lake, source, context.instance, now(), names):
                key = f"first sync of {id}, due {due:%Y-%m-%dT%H:%M:%S}"
                requests.append(dg.RunRequest(run_key=key, job_name=jobs[id].name))
        cursor = msgspec.json.encode(sorted(begun)).decode()
        if requests:
            return dg.SensorResult(run_requests=requests, cursor=cursor)
        skip = " ".join(lines) or "Every source has had its first sync."
        return dg.SensorResult(skip_reason=skip, cursor=cursor)

    return sensor


def arrivals(lake: Lake, jobs: Mapping[str, AssetJob], names: Names = NAMES) -> dg.SensorDefinition:
    """Observes the archives of the sources of `jobs`, by id, and requests a sync of what is new.

    While a sync is queued or running, it waits: that sync may have listed the archive before.
    """
    sources = [source for source in lake.settings.sources if source.id in jobs]

    @dg.sensor(
        name=names.of("arrivals"),
        jobs=list(jobs.values()),
        minimum_interval_seconds=60,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Observes raw archives, and syncs a source when files have arrived.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        known = msgspec.json.decode(context.cursor or "{}", type=dict[str, str])
        requests: list[dg.RunRequest] = []
        events: list[dg.AssetObservation] = []
        lines: list[str] = []
        for source in sources:
            try:
                seen = RunEvents(lake, source, names).of_archive()
            except Exception as error:  # reported by its syncs; the others go on
                lines.append(f"{source.slug} could not be read: {error}")
                continue
            version = seen.tags[VERSION]
            if known.get(source.id) == version:
                continue
            if busy := under_way(lake, source, context.instance, now(), names):
                lines.append(busy)
                continue
            known[source.id] = version
            events.append(seen)
            requests.append(dg.RunRequest(job_name=jobs[source.id].name))
        return dg.SensorResult(
            run_requests=requests,
            asset_events=events,
            cursor=msgspec.json.encode(known).decode(),
            skip_reason=None if requests else " ".join(lines) or "No archive has changed.",
        )

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
    lake: Lake,
    source: Source,
    instance: dg.DagsterInstance,
    moment: datetime,
    names: Names = NAMES,
) -> str | None:
    """A description of the sync of the source that is queued or running, unless it is dead."""
    for record in instance.get_run_records(dg.RunsFilter(statuses=_NOT_OVER)):
        run, made = record.dagster_run, record.create_timestamp.astimezone(UTC)
        if not is_sync(run, source, names):
            continue
        left = run.status is _STATUS.NOT_STARTED and moment - made > _MAX_CREATION
        if not left and not _is_known_dead(lake, run):
            return (
                f"Sync {run.run_id.split('-')[0]} of {source.slug} ({run.status.value.lower()} "
                f"since {made:%Y-%m-%d %H:%M} UTC) is not done yet; it loads all files that are "
                "there when it begins, and the next sync loads later ones."
            )
    return None


def is_sync(run: dg.DagsterRun, source: Source, names: Names) -> bool:
    """Whether a run syncs the source: by its job, or started in the graph of assets."""
    in_graph = run.asset_selection or ()
    return run.job_name == names.sync_job(source) or names.key(sync(source)) in in_graph


def _is_known_dead(lake: Lake, run: dg.DagsterRun) -> bool:
    try:
        return is_dead(lake, run)
    except Exception:  # the lake cannot be read, so a run of another machine may be alive
        return False
