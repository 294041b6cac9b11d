"""Data versions: nothing of the lake is outdated after its runs, and assets downstream follow."""

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.loader import LoadingContextForTest

from tests.support.lakes.platform import MakePlatform, Platform
from tests.support.repo import ROOT, blocks

ORDERS = dg.AssetKey(["web_shop", "track_order_completed"])
REVENUE, CUSTOMERS = dg.AssetKey("revenue"), dg.AssetKey("customers")


def outdated(platform: Platform, definitions: dg.Definitions) -> set[str]:
    """The assets that Dagster's UI marks, with their day if they have one."""
    graph = definitions.resolve_asset_graph()
    context = LoadingContextForTest(platform.instance)
    resolver = CachingStaleStatusResolver(platform.instance, graph, context)

    def marked() -> Iterator[str]:
        for key in graph.get_all_asset_keys():
            days = platform.instance.get_materialized_partitions(key)
            for day in sorted(days) if graph.get(key).is_partitioned else [None]:
                if resolver.get_status(key, day) is StaleStatus.STALE:
                    yield key.to_user_string() + (f" {day}" if day else "")

    return {*marked()}


def test_nothing_is_outdated_after_syncs_and_replays(make_platform: MakePlatform) -> None:
    platform = make_platform(arrived=1)
    platform.sync("web_shop")
    assert outdated(platform, platform.definitions()) == set()
    # Files that arrive make the sync outdated, as soon as the archive is observed.
    platform = make_platform(arrived=2)
    definitions = platform.definitions()
    archive = dg.AssetKey(["web_shop", "raw_archive"])
    job = definitions.resolve_implicit_global_asset_job_def()
    job.execute_in_process(instance=platform.instance, asset_selection=[archive])
    assert outdated(platform, definitions) == {"web_shop/sync"}

    platform.sync("web_shop")
    assert outdated(platform, platform.definitions()) == set()
    keys = platform.replayable("web_shop")
    result = platform.materialize(keys, date(2026, 10, 1), date(2026, 10, 1))
    assert result.success
    assert outdated(platform, platform.definitions()) == set()
    warned = [e.message for e in result.all_events if "not checked" in (e.message or "")]
    assert warned == []


@pytest.fixture
def documented(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The assets of the documentation, in a folder with the settings of the lake."""
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/dagster.md").read_text().partition("## Assets downstream")[2]
    names: dict[str, Any] = {}
    for block in blocks(page, "python")[:2]:
        exec(block, names)
    return names


def test_assets_downstream_of_a_table_follow_it(
    make_platform: MakePlatform, documented: dict[str, Any], tmp_path: Path
) -> None:
    platform = make_platform(arrived=1)
    settings = platform.lake.settings
    sources = [{"id": source.id, "slug": source.slug} for source in settings.sources]
    content = {"workspace_id": "w", "storage": settings.storage_uri, "sources": sources}
    (tmp_path / "lake.yaml").write_text(yaml.safe_dump(content))
    ours = dg.Definitions(assets=[documented["revenue"], documented["customers"]])

    def definitions() -> dg.Definitions:
        return dg.Definitions.merge(platform.definitions(), ours)

    def materialize(key: dg.AssetKey, day: str | None) -> None:
        job = definitions().resolve_implicit_global_asset_job_def()
        run = job.execute_in_process(
            instance=platform.instance, asset_selection=[key], partition_key=day
        )
        assert run.success

    cursor: Any = None

    def requested() -> tuple[set[str], int]:
        """The days of one asset, and whether the other is requested; requests are executed."""
        nonlocal cursor
        chosen = dg.AssetSelection.assets(REVENUE, CUSTOMERS)
        found = dg.evaluate_automation_conditions(
            definitions(), platform.instance, asset_selection=chosen, cursor=cursor
        )
        cursor = found.cursor
        days, whole = found.get_requested_partitions(REVENUE), found.get_num_requested(CUSTOMERS)
        for key, day in [(REVENUE, day) for day in days] + [(CUSTOMERS, None)] * whole:
            materialize(key, day)
        return {day for day in days if day}, whole

    platform.sync("web_shop")
    first = platform.rows("web_shop.track_order_completed")
    assert requested() == (set(), 0)  # what was there before is materialized by hand
    for day in first:
        materialize(REVENUE, day)
    materialize(CUSTOMERS, None)
    assert requested() == (set(), 0)

    platform = make_platform(arrived=2)
    platform.sync("web_shop")
    second = platform.rows("web_shop.track_order_completed")
    assert requested() == ({day for day in second if second[day] != first.get(day)}, 1)
    assert requested() == (set(), 0)
    assert outdated(platform, definitions()) == set()

    platform.materialize([ORDERS], date(2026, 10, 1), date(2026, 10, 1))
    assert outdated(platform, definitions()) == {"revenue 2026-10-01"}
    assert requested() == ({"2026-10-01"}, 1)
