"""The asset graph over `lake.yaml`."""

import time
from pathlib import Path

import dagster as dg
import pytest

from datalake_assets.definitions import build, defs
from datalake_assets.instance.snapshot import Snapshot, SourceSnapshot, read_snapshot
from eventlake.lake import Lake
from eventlake.rules.errors import UsageError
from eventlake.rules.names import Naming
from eventlake.rules.types import Column, LakeType, TableSchema
from eventlake.runs.resolve import standard_columns
from tests.support.lakes.platform import InProcessEngine, MakePlatform, Platform
from tests.support.lakes.settings import settings_of


def _keys(definitions: dg.Definitions) -> set[str]:
    return {key.to_user_string() for key in definitions.resolve_all_asset_keys()}


def test_before_the_first_sync_there_are_archives_and_reports(platform: Platform) -> None:
    assert _keys(platform.definitions()) == {
        "web_shop/raw_archive",
        "ios_prod/raw_archive",
        "__segment_datalake/web_shop_sync_reports",
        "__segment_datalake/ios_prod_sync_reports",
        "web_shop/upkeep",
        "ios_prod/upkeep",
    }


def test_new_event_types_become_assets(make_platform: MakePlatform) -> None:
    platform = make_platform(arrived=1)
    platform.sync("web_shop")
    first = _keys(platform.definitions())
    make_platform(arrived=2).sync("web_shop")
    second = _keys(platform.definitions())

    assert {"web_shop/page", "web_shop/page_schema"} < first
    assert "web_shop/track_gift_card_redeemed" in second - first
    assert first < second


def test_keys_are_unique_where_sources_share_a_database_and_events_have_reserved_names(
    tmp_path: Path,
) -> None:
    names = {
        "plain": ("page", "track_x", "track_x_schema", "sync", "upkeep", "raw_archive"),
        "db": ("page", "track_x", "archive"),
    }
    plain = {"id": "a", "slug": "plain", "database": "db"}
    prefixed = {"id": "b", "slug": "db", "database": "db", "table_prefix": "raw"}
    settings = settings_of(tmp_path, plain, prefixed)
    columns = standard_columns(Naming.NATIVE)
    known = {
        source.id: SourceSnapshot(
            "2026-10-01",
            {
                f"db.{called}": TableSchema(name, "db", called, name, columns)
                for name in names[source.slug]
                if (called := source.catalog_table(name))
                if source.table_prefix or name != "raw_archive"
            },
        )
        for source in settings.sources
    }
    definitions = build(Lake.open(settings), Snapshot(known))
    dg.Definitions.validate_loadable(definitions)

    keys = _keys(definitions)
    assert {"db/page", "db/page_schema", "db/raw_page", "db/raw_page_schema"} < keys
    assert {"db/track_x_schema", "db/tables/track_x_schema"} < keys  # an entry, and a table
    assert {"db/raw_archive", "db/tables/raw_archive", "db/tables/sync"} < keys
    assert len(keys) == 2 * sum(len(source.tables) for source in known.values()) + 2 * 3


def test_jobs_and_schedules_of_every_source(platform: Platform) -> None:
    repository = platform.definitions().get_repository_def()

    assert {job for job in repository.job_names if not job.startswith("__")} == {
        "check",
        "check_freshness",
        "check_tables_web_shop",
        "check_tables_ios_prod",
        "sync_web_shop",
        "replay_web_shop",
        "sync_ios_prod",
        "replay_ios_prod",
        "upkeep_web_shop",
        "upkeep_ios_prod",
        "upkeep_dagster",
    }
    schedules = {s.name: s.cron_schedule for s in repository.schedule_defs}
    assert schedules == {
        "sync_web_shop_schedule": "0 */2 * * *",
        "sync_ios_prod_schedule": "0 */2 * * *",
        "upkeep_web_shop_schedule": "30 3 * * *",
        "upkeep_ios_prod_schedule": "30 3 * * *",
        "upkeep_dagster_schedule": "30 3 * * *",
        "check_tables_web_shop_schedule": "30 4 * * *",
        "check_tables_ios_prod_schedule": "30 4 * * *",
        "check_freshness_schedule": "10 * * * *",
    }


def test_a_source_that_is_not_enabled_has_no_schedule(tmp_path: Path) -> None:
    off = {"id": "b2", "slug": "off", "enabled": False}
    settings = settings_of(tmp_path, {"id": "a1", "slug": "on"}, off)
    repository = build(Lake.open(settings), Snapshot()).get_repository_def()
    assert {schedule.name for schedule in repository.schedule_defs} == {
        "sync_on_schedule",
        "upkeep_on_schedule",
        "upkeep_dagster_schedule",
        "check_tables_on_schedule",
        "check_freshness_schedule",
    }


def test_an_asset_tells_what_it_is(platform: Platform) -> None:
    platform.sync("web_shop")
    graph = platform.definitions().resolve_asset_graph()
    page = graph.get(dg.AssetKey(["web_shop", "page"]))

    assert page.group_name == "web_shop"
    assert page.kinds == {"spark", "parquet"}
    assert graph.get(dg.AssetKey(["web_shop", "page_schema"])).kinds == {"local"}
    assert page.owners == ["team:data-platform"]
    assert page.description == "Every `page` event of web_shop, one row each."
    assert page.metadata["dagster/table_name"].value == "web_shop.page"
    assert page.parent_keys == {dg.AssetKey(["web_shop", "raw_archive"])}
    assert page.backfill_policy == dg.BackfillPolicy.single_run()
    assert page.partitions_def is not None
    assert page.partitions_def.get_first_partition_key() == "2026-10-01"


def test_the_snapshot_never_forgets_a_table(platform: Platform) -> None:
    platform.sync("web_shop")
    before = read_snapshot(platform.lake)
    platform.lake.storage.delete_folder("segment-data")

    assert read_snapshot(platform.lake) == before


def test_definitions_without_settings_say_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DATALAKE_CONFIG", raising=False)
    with pytest.raises(UsageError, match="datalake init"):
        defs()


def test_ten_sources_of_two_hundred_tables_load_in_seconds(tmp_path: Path) -> None:
    """A bound far above what is measured (see docs): it is to catch a change of order."""
    lake, snapshot = many_tables(tmp_path, sources=10, tables=200)
    began = time.process_time()
    definitions = build(lake, snapshot)
    dg.Definitions.validate_loadable(definitions)

    assert time.process_time() - began < 60
    assert len(_keys(definitions)) == 10 * (200 * 2 + 3)


def many_tables(root: Path, sources: int, tables: int) -> tuple[Lake, Snapshot]:
    settings = settings_of(root, *({"id": f"s{n}", "slug": f"source_{n}"} for n in range(sources)))
    columns = standard_columns(Naming.NATIVE) + tuple(
        Column(f"properties_{n}", LakeType.STRING, f"/properties/{n}") for n in range(50)
    )
    known = {
        source.id: SourceSnapshot(
            "2026-10-01",
            {
                f"{source.database}.track_{n}": TableSchema(
                    f"track_{n}", source.database, f"track_{n}", f"Event {n}", columns
                )
                for n in range(tables)
            },
        )
        for source in settings.sources
    }
    return Lake.open(settings), Snapshot(known)


def test_an_empty_sync_of_two_hundred_tables_is_quickly_booked(tmp_path: Path) -> None:
    """A bound far above what is measured; SQLite, as on a laptop."""
    lake, snapshot = many_tables(tmp_path / "lake", sources=1, tables=200)
    (tmp_path / "lake/segment-logs/s0").mkdir(parents=True)
    (tmp_path / "home").mkdir()
    job = build(lake, snapshot, InProcessEngine()).resolve_job_def("sync_source_0")
    with dg.DagsterInstance.local_temp(str(tmp_path / "home")) as instance:
        began = time.process_time()
        assert job.execute_in_process(instance=instance).success
        assert time.process_time() - began < 60
