"""The component: a lake in a project of Dagster's users, beside other lakes and assets."""

import os
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest
import yaml

import datalake_assets
from datalake_assets.assets.keys import LakeAsset, Names
from datalake_assets.component import EventLakeComponent, build
from datalake_assets.instance.snapshot import Snapshot, read_snapshot
from datalake_assets.resources import LakeResource
from datalake_assets.schedules import under_way
from datalake_assets.sensors.alerts import evaluate
from eventlake.lake import Lake
from eventlake.rules.clock import now
from tests.support.lakes.platform import Platform
from tests.support.lakes.settings import settings_of
from tests.support.repo import ROOT

BIN = Path(sys.executable).parent


def shouting(spec: dg.AssetSpec, asset: LakeAsset) -> dg.AssetSpec:
    """A translation like that of a project with rules of its own."""
    spec = spec.replace_attributes(key=dg.AssetKey([p.upper() for p in spec.key.path]))
    return spec.replace_attributes(owners=["team:events"], group_name=f"g_{asset.kind}")


def test_two_lakes_with_the_same_sources_and_other_assets_are_one_project(tmp_path: Path) -> None:
    lakes = [Lake.open(settings_of(tmp_path / name)) for name in ("one", "two")]
    both = [
        build(lake, Snapshot(), names=Names(name), alone=False)
        for lake, name in zip(lakes, ("eu", "us"), strict=True)
    ]

    @dg.asset
    def other() -> None: ...

    merged = dg.Definitions.merge(*both, dg.Definitions(assets=[other]))
    dg.Definitions.validate_loadable(merged)
    repository = merged.get_repository_def()
    names = [job for job in repository.job_names if not job.startswith("__")]
    names += [one.name for one in repository.schedule_defs]
    names += [one.name for one in repository.sensor_defs]
    assert all(name.startswith(("eu_", "us_")) for name in names)
    keys = {key.path[0] for key in merged.resolve_all_asset_keys()}
    assert keys == {"eu", "us", "other"}


def test_schedules_sensors_and_checks_can_be_left_out(platform: Platform) -> None:
    platform.sync("web_shop")
    without = build(
        platform.lake,
        read_snapshot(platform.lake),
        platform.engine,
        schedules=False,
        sensors=False,
        checks=False,
    )
    repository = without.get_repository_def()
    assert not list(repository.schedule_defs) and not list(repository.sensor_defs)
    assert not without.resolve_asset_graph().asset_check_keys
    days = {
        "dagster/asset_partition_range_start": "2026-10-01",
        "dagster/asset_partition_range_end": "2026-10-02",
    }
    job = without.resolve_job_def("replay_web_shop")
    assert job.execute_in_process(instance=platform.instance, tags=days).success


def test_runs_record_what_they_do_with_the_names_of_the_project(platform: Platform) -> None:
    names = Names("eu", shouting)

    def definitions() -> dg.Definitions:
        snapshot = read_snapshot(platform.lake)
        return build(platform.lake, snapshot, platform.engine, names=names, alone=False)

    source = platform.lake.settings.source("web_shop")
    job = definitions().resolve_job_def("eu_sync_web_shop")
    synced = job.execute_in_process(instance=platform.instance)
    page, archive = (
        dg.AssetKey(["EU", "WEB_SHOP", "PAGE"]),
        dg.AssetKey(["EU", "WEB_SHOP", "RAW_ARCHIVE"]),
    )
    assert platform.instance.get_materialized_partitions(page) == set(
        platform.rows("web_shop.page")
    )
    assert platform.instance.fetch_observations(archive, limit=1).records
    assert under_way(platform.lake, source, platform.instance, now(), names) is None

    graph = definitions().resolve_asset_graph()
    assert graph.get(page).group_name == "g_table" and graph.get(page).owners == ["team:events"]
    assert {key.path[0] for key in graph.get_all_asset_keys()} == {"EU"}
    recorded = {event.asset_key for event in synced.all_events if event.asset_key}
    assert recorded <= graph.get_all_asset_keys()

    days = {
        "dagster/asset_partition_range_start": "2026-10-01",
        "dagster/asset_partition_range_end": "2026-10-01",
    }
    replay = definitions().resolve_job_def("eu_replay_web_shop")
    assert replay.execute_in_process(instance=platform.instance, tags=days).success
    lines, _ = evaluate(platform.lake, platform.instance, None, now(), names)
    assert lines == ["`alerts` in lake.yaml names no recipients."]


def test_new_tables_come_from_the_state_which_only_grows(
    platform: Platform, tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    settings = platform.lake.settings.model_dump(mode="json", include={"workspace_id"})
    sources = [{"id": s.id, "slug": s.slug} for s in platform.lake.settings.sources]
    content = settings | {"storage": platform.lake.settings.storage_uri, "sources": sources}
    (folder / "lake.yaml").write_text(yaml.safe_dump(content))
    component = EventLakeComponent(config=str(folder / "lake.yaml"), name="x")
    state, page = tmp_path / "state", dg.AssetKey(["x", "web_shop", "page"])

    component.write_state_to_path(state)
    assert page not in keys_of(component, state)
    platform.sync("web_shop")
    component.write_state_to_path(state)
    assert page in keys_of(component, state)
    platform.lake.storage.delete_folder("segment-data")
    component.write_state_to_path(state)
    assert page in keys_of(component, state)


def keys_of(component: EventLakeComponent, state: Path) -> set[dg.AssetKey]:
    context = dg.ComponentTree.for_test().load_context
    return set(component.build_defs_from_state(context, state).resolve_all_asset_keys())


def test_the_lake_is_a_resource_whose_fields_replace_settings(tmp_path: Path) -> None:
    file = tmp_path / "lake.yaml"
    source = {"id": "a1", "slug": "web", "region": "eu-central-1"}
    content = {"workspace_id": "w", "storage": "./data", "region": "eu-west-1"}
    sources = [source, {"id": "a2", "slug": "ios"}]
    file.write_text(yaml.safe_dump({**content, "sources": sources}))
    lake = LakeResource(
        config=str(file), storage=str(tmp_path / "other"), region="us-east-1"
    ).open()
    assert lake.settings.storage_uri == str(tmp_path / "other")
    assert [s.region for s in lake.settings.sources] == ["eu-central-1", "us-east-1"]
    assert LakeResource(config=str(file)).open().settings.storage_uri == str(tmp_path / "data")


PROJECT = """[project]
name = "shop"
version = "0.1"
[tool.dg]
directory_type = "project"
[tool.dg.project]
root_module = "shop"
[tool.dg.cli.telemetry]
enabled = false
"""
DEFINITIONS = """from pathlib import Path

import dagster as dg


@dg.definitions
def defs() -> dg.Definitions:
    return dg.load_from_defs_folder(path_within_project=Path(__file__).parent)
"""
TRANSLATED = """type: datalake_assets.EventLakeComponent
attributes:
  config: lake.yaml
  name: app
  schedules: false
  translation:
    key: "mobile/{{ spec.key.path | join('/') }}"
    group_name: "app_{{ kind }}"
    owners: ["team:data"]
    tags: {layer: raw}
"""


@pytest.mark.e2e
def test_a_project_gets_two_lakes_by_dagsters_own_commands(tmp_path: Path) -> None:
    package = tmp_path / "src/shop"
    (package / "defs").mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    (package / "definitions.py").write_text(DEFINITIONS)
    for module in (package, package / "defs"):
        (module / "__init__.py").touch()

    def dg_(*words: str) -> str:
        path = os.pathsep.join([str(ROOT), str(tmp_path / "src"), os.environ.get("PYTHONPATH", "")])
        done = subprocess.run(
            [BIN / "dg", *words],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": path, "COLUMNS": "200"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    component = f"{datalake_assets.__name__}.{EventLakeComponent.__name__}"
    assert component in dg_("list", "components")
    dg_("scaffold", "defs", component, "web")
    dg_("scaffold", "defs", component, "app")
    (package / "defs/app/defs.yaml").write_text(TRANSLATED)
    dg_("check", "yaml")
    assert "All definitions loaded successfully" in dg_("check", "defs")
    listed = dg_("list", "defs")
    for expected in (
        "mobile/app/web/sync",
        "web/web/sync",
        "app_lake",
        "app_sync",
        "app_sync_web",
    ):
        assert expected in listed, expected
    assert "app_sync_web_schedule" not in listed and "web_sync_web_schedule" in listed
    dg_("utils", "refresh-defs-state")
    assert list(package.glob("defs/.local_defs_state/*/state"))
