"""The code location: everything Dagster knows of the lake that `lake.yaml` describes."""

import os
import warnings
from pathlib import Path

import dagster as dg

from datalake_assets.assets.event_tables import event_tables
from datalake_assets.assets.keys import raw_archive, replay_job_name
from datalake_assets.checks import PublishedChecks
from datalake_assets.instance.snapshot import Snapshot, read_snapshot
from datalake_assets.instance.terminal_log import console
from datalake_assets.jobs.check import check_job
from datalake_assets.jobs.sync import SCHEDULES_VARIABLE, sync_job
from datalake_assets.jobs.upkeep import (
    dagster_upkeep_job,
    upkeep_asset,
    upkeep_job,
    upkeep_schedule,
)
from datalake_assets.schedules import first_syncs, sync_schedule
from datalake_assets.sensors.alerts import alert
from datalake_assets.sensors.dead_runs import close_dead
from datalake_assets.sensors.reload import reload_for_new_tables
from eventlake.lake import Lake
from eventlake.settings.file import load_settings
from spark_resources.engines.base import SparkEngine, engine_of


@dg.definitions
def defs() -> dg.Definitions:
    """Read the settings and the snapshot of tables; nothing else, and nothing at import."""
    lake = Lake.open(load_settings(None, os.environ, Path.cwd()))
    running = os.environ.get(SCHEDULES_VARIABLE) == "on"
    return build(lake, read_snapshot(lake), schedules_running=running)


def build(
    lake: Lake,
    snapshot: Snapshot,
    engine: SparkEngine | None = None,
    schedules_running: bool = False,
) -> dg.Definitions:
    """The definitions of a lake in which these tables are known."""
    # Dagster copies sensors that have several jobs, and warns of a parameter that it sets itself.
    warnings.filterwarnings("ignore", "Parameter `owners` of .*SensorDefinition", dg.BetaWarning)
    sources = lake.settings.sources
    tables = {source.id: event_tables(lake, source, snapshot.of(source.id)) for source in sources}
    syncs = {source.id: sync_job(lake, source) for source in sources}
    scheduled = {source.id: syncs[source.id] for source in sources if source.is_scheduled}
    upkeeps = {source.id: upkeep_job(lake, source) for source in sources}
    own_upkeep = dagster_upkeep_job(lake)
    checks = PublishedChecks.of(lake, snapshot)
    return dg.Definitions(
        assets=[
            *(raw_archive(lake, source) for source in sources),
            *(upkeep_asset(source) for source in sources),
            *tables.values(),
        ],
        jobs=[
            check_job(lake),
            *syncs.values(),
            *upkeeps.values(),
            own_upkeep,
            *checks.jobs.values(),
            checks.freshness,
            *(
                dg.define_asset_job(
                    replay_job_name(source),
                    # A replay has checks of its own; those of what is published have jobs.
                    selection=dg.AssetSelection.assets(*tables[source.id].keys)
                    - dg.AssetSelection.checks(checks.by_source[source.id]),
                    description=f"Replay of {source.slug}: load days again from the archive.",
                )
                for source in sources
            ),
        ],
        asset_checks=[*checks.by_source.values()],
        schedules=[
            *(
                sync_schedule(lake, source, scheduled[source.id], schedules_running)
                for source in sources
                if source.id in scheduled
            ),
            *(upkeep_schedule(upkeeps[s.id], schedules_running) for s in sources if s.enabled),
            upkeep_schedule(own_upkeep, schedules_running),
            *checks.schedules(schedules_running),
        ],
        sensors=[
            reload_for_new_tables(lake, snapshot),
            close_dead(lake),
            alert(lake),
            *([first_syncs(lake, scheduled, schedules_running)] if scheduled else ()),
        ],
        resources={"engine": engine or engine_of(lake.settings)},
        executor=dg.in_process_executor,
        loggers={"console": console},
    )
