"""The definitions of a lake, and the component that adds them to a project of Dagster."""

import warnings
from pathlib import Path
from typing import Annotated, Any

import dagster as dg
from dagster.components import DefsStateConfig, DefsStateConfigArgs, ResolvedDefsStateConfig
from dagster.components.utils.translation import TranslationFnResolver
from pydantic import Field

from datalake_assets.assets.event_tables import archive_asset, event_tables, schema_assets
from datalake_assets.assets.keys import LakeAsset, Names, Translation, run_tags
from datalake_assets.checks import check_tables_job, freshness_job, table_checks
from datalake_assets.instance.snapshot import (
    Snapshot,
    grown,
    lake_states,
    local_snapshot,
    read_snapshot,
)
from datalake_assets.instance.terminal_log import console
from datalake_assets.jobs import (
    asset_job,
    check_job,
    dagster_upkeep_job,
    sync_asset,
    upkeep_asset,
)
from datalake_assets.resources import LakeResource
from datalake_assets.schedules import arrivals, first_syncs, fixed_schedule, sync_schedule
from datalake_assets.sensors.alerts import alert
from datalake_assets.sensors.dead_runs import close_dead
from datalake_assets.sensors.reload import reload_for_new_tables
from eventlake.lake import Lake
from eventlake.settings.file import template
from eventlake.settings.models import Source, SyncTrigger
from eventlake.storage.documents import decode, encode
from spark_resources.engines.base import SparkEngine, engine_of

NIGHTLY_UPKEEP = "30 3 * * *"
"""UTC: the day before is over, and most of its late files have arrived."""
NIGHTLY_CHECKS = "30 4 * * *"
HOURLY = "10 * * * *"


def build(
    lake: Lake,
    snapshot: Snapshot,
    engine: SparkEngine | None = None,
    *,
    names: Names | None = None,
    resource: LakeResource | None = None,
    schedules: bool = True,
    sensors: bool = True,
    checks: bool = True,
    alone: bool = True,
) -> dg.Definitions:
    """The definitions of a lake with the tables of a snapshot; `resource` opens it in runs.

    `alone` in its code location, they also choose the executor and the log of the terminal.
    """
    # When Dagster copies sensors with several jobs, it warns of a parameter that it sets itself.
    warnings.filterwarnings("ignore", "Parameter `owners` of .*SensorDefinition", dg.BetaWarning)
    warnings.filterwarnings("ignore", "Function `multi_observable_source_asset`", dg.BetaWarning)
    names = names or Names()
    of_sources = [_Parts(lake, source, snapshot, names, checks) for source in lake.settings.sources]
    enabled = [parts for parts in of_sources if parts.source.enabled]
    scheduled = [parts for parts in of_sources if parts.source.is_scheduled]
    on_arrival = [p for p in enabled if p.source.sync is SyncTrigger.ON_ARRIVAL]
    own_upkeep, freshness = dagster_upkeep_job(lake, names), freshness_job(lake, names)
    return dg.Definitions(
        assets=[asset for parts in of_sources for asset in parts.assets],
        jobs=[
            check_job(lake, names),
            own_upkeep,
            *([freshness] if checks else ()),
            *(job for parts in of_sources for job in parts.jobs),
        ],
        asset_checks=[parts.checks for parts in of_sources if parts.checks],
        schedules=[
            *(sync_schedule(lake, s.source, s.sync, names) for s in scheduled),
            *(fixed_schedule(s.upkeep, NIGHTLY_UPKEEP, s in scheduled) for s in enabled),
            fixed_schedule(own_upkeep, NIGHTLY_UPKEEP, bool(scheduled)),
            *(
                fixed_schedule(s.check_tables, NIGHTLY_CHECKS, s in scheduled)
                for s in (enabled if checks else ())
            ),
            *([fixed_schedule(freshness, HOURLY, bool(scheduled))] if checks else ()),
        ]
        if schedules
        else [],
        sensors=[
            reload_for_new_tables(lake, snapshot, names),
            close_dead(lake, names),
            alert(lake, names),
            *(
                [first_syncs(lake, {s.source.id: s.sync for s in scheduled}, names)]
                if scheduled
                else ()
            ),
            *(
                [arrivals(lake, {s.source.id: s.sync for s in on_arrival}, names)]
                if on_arrival
                else ()
            ),
        ]
        if sensors
        else [],
        resources={
            names.of("lake"): resource or lake,
            names.of("engine"): engine or engine_of(lake.settings),
        },
        executor=dg.in_process_executor if alone else None,
        loggers={"console": console} if alone else None,
    )


class _Parts:
    """The definitions of one source."""

    def __init__(
        self, lake: Lake, source: Source, snapshot: Snapshot, names: Names, with_checks: bool
    ) -> None:
        known, self.source = snapshot.of(source.id), source
        archive = archive_asset(lake, source, names)
        synced, kept = sync_asset(source, names), upkeep_asset(source, names)
        tables = event_tables(lake, source, known, names, with_checks)
        self.assets: list[Any] = [
            archive,
            synced,
            kept,
            tables,
            *schema_assets(lake, source, known, names),
        ]
        self.checks = table_checks(source, known.tables_of(source), names) if with_checks else None
        self.sync = asset_job(synced, names.sync_job(source), lake, source)
        self.upkeep = asset_job(kept, names.upkeep_job(source), lake, source)
        self.check_tables = check_tables_job(lake, source, names)
        # A replay evaluates the checks of published tables itself: selected, they would read the
        # lake.
        selection: dg.AssetSelection = dg.AssetSelection.assets(*tables.keys)
        if self.checks:
            selection = selection - dg.AssetSelection.checks(self.checks)
        replay = dg.define_asset_job(
            names.replay_job(source),
            selection=selection,
            description=f"Replay of {source.slug}: load days again from the archive.",
            run_tags=run_tags(lake, source),
            executor_def=dg.in_process_executor,
        )
        self.jobs = [self.sync, self.upkeep, replay, *([self.check_tables] if with_checks else [])]


class EventLakeScaffolder(dg.Scaffolder[Any]):
    """Writes the YAML of the component, and a commented lake.yaml beside it."""

    def scaffold(self, request: dg.ScaffoldRequest[Any]) -> None:
        dg.scaffold_component(request, {"config": "lake.yaml", "name": request.target_path.name})
        (request.target_path / "lake.yaml").write_text(template())


@dg.scaffold_with(EventLakeScaffolder)
class EventLakeComponent(dg.StateBackedComponent, dg.Model, dg.Resolvable):
    """A lake of typed event tables: its archives, syncs, event tables, checks and upkeep.

    The known event tables are its state: `dagster dev` and `dg dev` refresh it whenever they load
    the code location, elsewhere `dg utils refresh-defs-state` does.
    """

    config: Annotated[
        str,
        dg.Resolver(lambda context, path: str(context.resolve_source_relative_path(path))),
        Field(description="Path of lake.yaml, from the folder of this file."),
    ]
    name: str = Field(
        default="",
        pattern="^[a-z0-9_]*$",
        description="A prefix of all keys and names, for projects with several lakes.",
    )
    translation: (
        Annotated[
            Translation,
            TranslationFnResolver[LakeAsset](
                lambda asset: {
                    "data": asset,
                    "kind": asset.kind,
                    "database": asset.database,
                    "name": asset.name,
                }
            ),
        ]
        | None
    ) = Field(default=None, description="Changes keys, groups, owners or tags of assets.")
    schedules: bool = Field(default=True, description="Schedules of syncs, upkeep and checks.")
    sensors: bool = Field(default=True, description="Alerts, first syncs, arrivals and others.")
    checks: bool = Field(default=True, description="Asset checks of the event tables.")
    defs_state: ResolvedDefsStateConfig = DefsStateConfigArgs.local_filesystem()

    @property
    def defs_state_config(self) -> DefsStateConfig:
        key = f"EventLakeComponent[{self.name or self.config}]"
        return DefsStateConfig.from_args(self.defs_state, default_key=key)

    def write_state_to_path(self, state_path: Path) -> None:
        """Add the tables of the lake to the state, which only grows: queued runs need theirs."""
        states = lake_states(self.resource().open())
        state_path.write_bytes(encode(_snapshot_at(state_path).with_states(states)))

    def build_defs_from_state(
        self, context: dg.ComponentLoadContext, state_path: Path | None
    ) -> dg.Definitions:
        lake = self.resource().open()
        if state_path is None:
            return self.definitions(lake, read_snapshot(lake))
        here = local_snapshot(lake) or Snapshot()
        return self.definitions(lake, grown(_snapshot_at(state_path), here))

    def load_definitions(self) -> dg.Definitions:
        """The definitions with the tables that the lake has now, for projects without YAML."""
        lake = self.resource().open()
        return self.definitions(lake, read_snapshot(lake))

    def definitions(self, lake: Lake, snapshot: Snapshot, *, alone: bool = False) -> dg.Definitions:
        """The definitions of the lake with the tables of a snapshot."""
        return build(
            lake,
            snapshot,
            names=Names(self.name, self.translation),
            resource=self.resource(),
            schedules=self.schedules,
            sensors=self.sensors,
            checks=self.checks,
            alone=alone,
        )

    def resource(self) -> LakeResource:
        return LakeResource(config=self.config)


def _snapshot_at(path: Path) -> Snapshot:
    return decode(path.read_bytes(), Snapshot, str(path)) if path.exists() else Snapshot()
