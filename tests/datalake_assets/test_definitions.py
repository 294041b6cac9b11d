"""The asset graph over `lake.yaml`."""

import time
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.freshness import TimeWindowFreshnessPolicy

from datalake_assets.assets.events import CODE_VERSION
from datalake_assets.assets.metadata import as_code, as_text
from datalake_assets.component import build
from datalake_assets.definitions import defs, settings_file
from datalake_assets.instance.snapshot import Snapshot, SourceSnapshot, read_snapshot
from eventlake.lake import Lake
from eventlake.rules.errors import UsageError
from eventlake.rules.names import Naming
from eventlake.rules.types import Column, LakeType, TableSchema
from eventlake.runs.resolve import standard_columns
from eventlake.settings.models import Source
from tests.support.lakes.platform import InProcessEngine, MakePlatform, Platform
from tests.support.lakes.settings import settings_of


def _keys(definitions: dg.Definitions) -> set[str]:
    return {key.to_user_string() for key in definitions.resolve_all_asset_keys()}


def known_tables(
    source: Source, names: Iterable[str], columns: tuple[Column, ...]
) -> SourceSnapshot:
    schemas = [
        TableSchema(name, source.database, source.catalog_table(name), name, columns)
        for name in names
    ]
    return SourceSnapshot("2026-10-01", {schema.key: schema for schema in schemas})


def test_before_the_first_sync_there_are_archives_and_reports(platform: Platform) -> None:
    each = ("{}/raw_archive", "{}/sync", "__segment_datalake/{}_sync_reports", "{}/upkeep")
    assert _keys(platform.definitions()) == {
        key.format(slug) for key in each for slug in ("web_shop", "ios_prod")
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
        "plain": ("page", "track_x", "track_x_schema", "sync", "upkeep"),
        "db": ("page", "track_x", "archive"),
    }
    plain = {"id": "a", "slug": "plain", "database": "db"}
    prefixed = {"id": "b", "slug": "db", "database": "db", "table_prefix": "raw"}
    settings = settings_of(tmp_path, plain, prefixed)
    columns = standard_columns(Naming.NATIVE)
    known = {
        source.id: known_tables(source, names[source.slug], columns) for source in settings.sources
    }
    definitions = build(Lake.open(settings), Snapshot(known))
    dg.Definitions.validate_loadable(definitions)

    keys = _keys(definitions)
    assert {"db/page", "db/page_schema", "db/raw_page", "db/raw_page_schema"} < keys
    assert {"db/track_x_schema", "db/tables/track_x_schema"} < keys  # an entry, and a table
    assert {"db/raw_archive", "db/tables/raw_archive", "db/tables/sync"} < keys
    assert len(keys) == 2 * sum(len(source.tables) for source in known.values()) + 2 * 4


def test_jobs_and_schedules_of_every_source(platform: Platform) -> None:
    repository = platform.definitions().get_repository_def()
    each = {
        "sync": "0 */2 * * *",
        "replay": None,
        "upkeep": "30 3 * * *",
        "check_tables": "30 4 * * *",
    }
    expected = {
        f"{job}_{slug}": cron for job, cron in each.items() for slug in ("web_shop", "ios_prod")
    }
    expected |= {"check": None, "check_freshness": "10 * * * *", "upkeep_dagster": "30 3 * * *"}
    assert {job for job in repository.job_names if not job.startswith("__")} == expected.keys()
    assert {s.name: s.cron_schedule for s in repository.schedule_defs} == {
        f"{job}_schedule": cron for job, cron in expected.items() if cron
    }


def test_a_source_that_is_not_enabled_has_no_schedule(tmp_path: Path) -> None:
    off = {"id": "b2", "slug": "off", "enabled": False}
    settings = settings_of(tmp_path, {"id": "a1", "slug": "on"}, off)
    repository = build(Lake.open(settings), Snapshot()).get_repository_def()
    jobs = ("sync_on", "upkeep_on", "upkeep_dagster", "check_tables_on", "check_freshness")
    assert {s.name for s in repository.schedule_defs} == {f"{job}_schedule" for job in jobs}


def test_schedules_and_freshness_are_as_the_settings_say(tmp_path: Path) -> None:
    """A source that is not synced by schedule is not overdue, and nothing runs for it by itself."""
    sources: list[dict[str, object]] = [
        {"id": "a", "slug": "usual"},
        {"id": "b", "slug": "strict", "freshness_policy": "tables", "owners": ["team:data"]},
        {"id": "c", "slug": "lax", "freshness_policy": "off"},
        {"id": "d", "slug": "by_hand", "schedule": "off"},
    ]
    settings = settings_of(tmp_path, *sources)
    columns = standard_columns(Naming.NATIVE)
    known = {source.id: known_tables(source, ("page",), columns) for source in settings.sources}
    definitions = build(Lake.open(settings), Snapshot(known))
    graph = definitions.resolve_asset_graph()
    overdue = {
        key.to_user_string(): policy.fail_window.to_timedelta()
        for key in graph.get_all_asset_keys()
        if isinstance(policy := graph.get(key).freshness_policy, TimeWindowFreshnessPolicy)
    }
    assert overdue == dict.fromkeys(
        ("usual/sync", "strict/sync", "strict/page"), timedelta(hours=4)
    )
    owned = [key.to_user_string() for key in graph.get_all_asset_keys() if graph.get(key).owners]
    of_source = ("raw_archive", "sync", "upkeep", "page", "page_schema")
    names = {f"strict/{name}" for name in of_source}
    assert set(owned) == names | {"__segment_datalake/strict_sync_reports"}

    repository = definitions.get_repository_def()
    stopped = {s.name for s in repository.schedule_defs if s.default_status.value == "STOPPED"}
    assert stopped == {"upkeep_by_hand_schedule", "check_tables_by_hand_schedule"}


def test_text_from_senders_is_text_in_markdown() -> None:
    assert as_code("Order") == "`Order`"
    assert as_code("a`![x](http://y)``b\n# c") == "``` a`![x](http://y)``b # c ```"
    assert as_text("![x](y)\n<b> a|b `c`") == r"!\[x\](y) \<b\> a\|b \`c\`"


def test_an_asset_describes_itself(platform: Platform) -> None:
    platform.sync("web_shop")
    graph = platform.definitions().resolve_asset_graph()
    page = graph.get(dg.AssetKey(["web_shop", "page"]))

    assert page.group_name == "web_shop"
    assert page.kinds == {"spark", "parquet", "file"}
    assert graph.get(dg.AssetKey(["web_shop", "page_schema"])).kinds == {"file"}
    assert page.owners == []
    assert page.description is not None and page.description.startswith(
        "Every `page` event of web_shop, one row each. Syncs load new events. Materializing days"
    )
    assert page.code_version == CODE_VERSION
    assert page.metadata["dagster/table_name"] == "web_shop.page"
    assert page.parent_keys == {dg.AssetKey(["web_shop", "sync"])}
    assert page.backfill_policy == dg.BackfillPolicy.single_run()
    assert page.partitions_def is not None
    assert page.partitions_def.get_first_partition_key() == "2026-10-01"


def test_the_graph_tells_the_story(platform: Platform) -> None:
    platform.sync("web_shop")
    graph = platform.definitions().resolve_asset_graph()

    def key(*path: str) -> dg.AssetKey:
        return dg.AssetKey(path)

    archive, synced = key("web_shop", "raw_archive"), key("web_shop", "sync")
    page, schema = key("web_shop", "page"), key("web_shop", "page_schema")
    sync_reports = key("__segment_datalake", "web_shop_sync_reports")
    assert graph.get(archive).is_observable
    assert graph.get(synced).parent_keys == {archive}
    assert graph.get(page).parent_keys == {synced}
    assert graph.get(schema).parent_keys == {page} <= graph.get(sync_reports).parent_keys
    # A catalog entry cannot be materialized alone, and has no days.
    assert not graph.get(schema).is_executable and not graph.get(schema).is_partitioned


def test_the_snapshot_never_forgets_a_table(platform: Platform) -> None:
    platform.sync("web_shop")
    before = read_snapshot(platform.lake)
    platform.lake.storage.delete_folder("segment-data")

    assert read_snapshot(platform.lake) == before


def test_definitions_without_settings_explain_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DATALAKE_CONFIG", raising=False)
    graph = defs().resolve_asset_graph()
    [asset] = [graph.get(key) for key in graph.get_all_asset_keys()]
    assert "`datalake init`" in str(asset.description) and not asset.is_executable

    monkeypatch.setenv("DATALAKE_CONFIG", "mine.yaml")
    with pytest.raises(UsageError, match=r"no settings at .*mine\.yaml"):
        defs()


def test_without_settings_the_demo_is_shown_if_there_is_one(tmp_path: Path) -> None:
    assert settings_file({}, tmp_path) is None
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo/lake.yaml").touch()
    assert settings_file({}, tmp_path) == tmp_path / "demo/lake.yaml"
    (tmp_path / "lake.yaml").touch()
    assert settings_file({}, tmp_path) == tmp_path / "lake.yaml"


def test_ten_sources_of_two_hundred_tables_load_in_seconds(tmp_path: Path) -> None:
    """A bound far above what is measured (see docs): it is to catch a change of order."""
    lake, snapshot = many_tables(tmp_path, sources=10, tables=200)
    began = time.process_time()
    definitions = build(lake, snapshot)
    dg.Definitions.validate_loadable(definitions)

    assert time.process_time() - began < 60
    assert len(_keys(definitions)) == 10 * (200 * 2 + 4)


def many_tables(root: Path, sources: int, tables: int) -> tuple[Lake, Snapshot]:
    settings = settings_of(root, *({"id": f"s{n}", "slug": f"source_{n}"} for n in range(sources)))
    columns = standard_columns(Naming.NATIVE) + tuple(
        Column(f"properties_{n}", LakeType.STRING, f"/properties/{n}") for n in range(50)
    )
    names = [f"track_{n}" for n in range(tables)]
    known = {source.id: known_tables(source, names, columns) for source in settings.sources}
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
