"""The code location: the lake that `lake.yaml` describes, as Dagster definitions."""

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dagster as dg

from datalake_assets.assets.event_tables import event_tables
from datalake_assets.assets.keys import raw_archive, replay_job_name, run_tags
from datalake_assets.checks import check_tables_job, freshness_job, table_checks
from datalake_assets.instance.home import VARIABLE, reserve_names
from datalake_assets.instance.snapshot import Snapshot, read_snapshot
from datalake_assets.instance.terminal_log import console
from datalake_assets.jobs import (
    SCHEDULES_VARIABLE,
    check_job,
    dagster_upkeep_job,
    sync_job,
    upkeep_asset,
    upkeep_job,
)
from datalake_assets.schedules import first_syncs, fixed_schedule, sync_schedule
from datalake_assets.sensors.alerts import alert
from datalake_assets.sensors.dead_runs import close_dead
from datalake_assets.sensors.reload import reload_for_new_tables
from eventlake.lake import Lake
from eventlake.settings.file import FILE_VARIABLE, find_settings, load_settings
from eventlake.settings.models import Source
from spark_resources.engines.base import SparkEngine, engine_of

NIGHTLY_UPKEEP = "30 3 * * *"
"""UTC: the day before is over, and most of its late files have arrived."""
NIGHTLY_CHECKS = "30 4 * * *"
HOURLY = "10 * * * *"


@dg.definitions
def defs() -> dg.Definitions:
    """Read the settings and the snapshot of tables, and nothing at import."""
    file = settings_file(os.environ, Path.cwd())
    if file is None:
        return no_lake_yet(Path.cwd())
    lake = Lake.open(load_settings(file, os.environ, Path.cwd()))
    if home := os.environ.get(VARIABLE):
        reserve_names(lake.settings, Path(home))
    running = os.environ.get(SCHEDULES_VARIABLE) == "on"
    return build(lake, read_snapshot(lake), schedules_running=running)


DEMO = Path("demo/lake.yaml")
"""The default settings file of the demo."""


def settings_file(env: Mapping[str, str], folder: Path) -> Path | None:
    """`lake.yaml`, else that of the demo; None: neither is there, and no variable names one."""
    file = find_settings(None, env, folder)
    if env.get(FILE_VARIABLE) or file.exists():
        return file
    return next((demo for demo in [folder / DEMO] if demo.exists()), None)


def no_lake_yet(folder: Path) -> dg.Definitions:
    """A code location that loads without settings, and says what to do."""
    steps = f"""There is no `lake.yaml` in `{folder}`, so there are no event tables to show.

- To look around: `datalake demo` creates a lake from sample data in `demo/`.
- To use your own archive: `datalake init` writes a commented `lake.yaml`; fill it in, then run
  `datalake check`.

If the file is elsewhere, set `${FILE_VARIABLE}` to its path. Then choose **Reload definitions** in
**Deployment**.
"""
    return dg.Definitions(
        assets=[dg.AssetSpec("no_lake_yaml_yet", description=steps, group_name="start_here")]
    )


def build(
    lake: Lake,
    snapshot: Snapshot,
    engine: SparkEngine | None = None,
    schedules_running: bool = False,
) -> dg.Definitions:
    """The definitions of a lake with the tables of a snapshot."""
    # When Dagster copies sensors with several jobs, it warns of a parameter that it sets itself.
    warnings.filterwarnings("ignore", "Parameter `owners` of .*SensorDefinition", dg.BetaWarning)
    sources = lake.settings.sources
    known = {source.id: snapshot.of(source.id) for source in sources}
    tables = {source.id: event_tables(lake, source, known[source.id]) for source in sources}
    checks = {s.id: table_checks(lake, s, known[s.id].tables_of(s)) for s in sources}
    syncs = {source.id: sync_job(lake, source) for source in sources}
    scheduled = {source.id: syncs[source.id] for source in sources if source.is_scheduled}
    upkeeps = {source.id: upkeep_job(lake, source) for source in sources}
    own_upkeep, freshness = dagster_upkeep_job(lake), freshness_job(lake)
    table_jobs = {source.id: check_tables_job(lake, source) for source in sources}
    enabled = [source.id for source in sources if source.enabled]
    running = schedules_running
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
            *table_jobs.values(),
            freshness,
            *(
                _replay_job(lake, source, tables[source.id], checks[source.id])
                for source in sources
            ),
        ],
        asset_checks=[*checks.values()],
        schedules=[
            *(
                sync_schedule(lake, source, scheduled[source.id], running)
                for source in sources
                if source.id in scheduled
            ),
            *(fixed_schedule(upkeeps[id], NIGHTLY_UPKEEP, running) for id in enabled),
            fixed_schedule(own_upkeep, NIGHTLY_UPKEEP, running),
            *(fixed_schedule(table_jobs[id], NIGHTLY_CHECKS, running) for id in enabled),
            fixed_schedule(freshness, HOURLY, running),
        ],
        sensors=[
            reload_for_new_tables(lake, snapshot),
            close_dead(lake),
            alert(lake),
            *([first_syncs(lake, scheduled, running)] if scheduled else ()),
        ],
        resources={"engine": engine or engine_of(lake.settings)},
        executor=dg.in_process_executor,
        loggers={"console": console},
    )


def _replay_job(
    lake: Lake, source: Source, tables: dg.AssetsDefinition, checks: dg.AssetChecksDefinition
) -> Any:
    # A replay evaluates the checks of published tables itself: selected, they would read the lake.
    return dg.define_asset_job(
        replay_job_name(source),
        selection=dg.AssetSelection.assets(*tables.keys) - dg.AssetSelection.checks(checks),
        description=f"Replay of {source.slug}: load days again from the archive.",
        run_tags=run_tags(lake, source),
    )
