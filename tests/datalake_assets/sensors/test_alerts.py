"""The sensor `alerts` reports failed runs and checks of Dagster to people, once."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from datalake_assets.component import build
from datalake_assets.instance.snapshot import Snapshot
from datalake_assets.sensors import alerts
from datalake_assets.sensors.alerts import owner_of
from eventlake.lake import Lake
from eventlake.rules import paths
from eventlake.rules.errors import ServiceTrouble
from eventlake.runs.context import Published, now
from eventlake.sample import IOS_PROD, WEB_SHOP
from spark_resources.dataflow.job import LakeJob
from tests.support.faults.damage import NEWER_RELEASE
from tests.support.lakes.platform import InProcessEngine, MakePlatform, Platform
from tests.support.lakes.settings import settings_of
from tests.support.servers.alerts import Hook

WEB = {"id": WEB_SHOP.id, "slug": WEB_SHOP.slug}
IOS = {"id": IOS_PROD.id, "slug": IOS_PROD.slug}
CHANNEL = {"webhook": "$DATALAKE_WEBHOOK", "ui_url": "https://dagster.example.com"}


class BrokenEngine(InProcessEngine):
    """Fails as EMR does on a bad day."""

    def run(self, job: LakeJob, listener: Any) -> Iterator[Published]:
        raise ServiceTrouble("EMR did not answer.")


class Watched:
    """A platform with alerts, and their sensor."""

    def __init__(self, platform: Platform) -> None:
        root = Path(platform.lake.settings.storage)
        settings = settings_of(root, {**WEB, "alerts": CHANNEL}, {**IOS, "alerts": CHANNEL})
        platform.lake = Lake.open(settings)
        self.platform, self.instance = platform, platform.instance
        self.cursor: str | None = None

    def tick(self) -> str:
        """What the sensor says."""
        context = dg.build_sensor_context(instance=self.instance, cursor=self.cursor)
        sensor = self.platform.definitions().resolve_sensor_def("alerts")
        said = sensor.evaluate_tick(context)
        self.cursor = said.cursor
        return said.skip_message or ""

    def run(self, job: str = "sync_web_shop", **how: Any) -> dg.DagsterRun:
        """A run that has not been launched yet."""
        made = self.platform.definitions().resolve_job_def(job)
        return self.instance.create_run_for_job(made, **how)

    def failed_before_it_began(self, job: str = "sync_web_shop", **tags: str) -> str:
        run = self.run(job, tags=tags)
        self.instance.report_run_failed(run, "The run could not be launched: no room.")
        if tags:
            self.instance.add_run_tags(run.run_id, tags)
        return run.run_id


@pytest.fixture
def watched(make_platform: MakePlatform, hook: Hook) -> Watched:
    watched = Watched(make_platform())
    assert watched.tick() == "Nothing to report."
    return watched


def test_the_sensor_runs_by_default_only_where_there_are_recipients(watched: Watched) -> None:
    without = build(Lake.open(settings_of("/nowhere", WEB)), Snapshot(), InProcessEngine())
    statuses = [
        definitions.resolve_sensor_def("alerts").default_status
        for definitions in (watched.platform.definitions(), without)
    ]
    assert statuses == [dg.DefaultSensorStatus.RUNNING, dg.DefaultSensorStatus.STOPPED]


def test_a_failed_sync_is_reported_with_a_link(watched: Watched, hook: Hook) -> None:
    watched.platform.engine = BrokenEngine()
    failed = watched.platform.sync("web_shop")
    assert not failed.success
    assert "web_shop, by webhook: web_shop: sync failed." in watched.tick()
    assert watched.tick() == "Nothing to report."
    payload = hook.posts[0]["metadata"]["event_payload"]
    assert payload["link"] == f"https://dagster.example.com/runs/{failed.run_id}"
    assert payload["error"] == "EMR did not answer."


def test_a_run_that_failed_before_it_began_is_reported_once(watched: Watched, hook: Hook) -> None:
    before = watched.cursor
    assert before
    run = watched.failed_before_it_began()
    watched.tick()
    assert watched.cursor not in (None, before)  # the next tick continues here
    watched.cursor = None  # as if Dagster had lost it
    watched.tick()
    assert hook.titles == ["web_shop: sync failed"]
    payload = hook.posts[0]["metadata"]["event_payload"]
    assert payload["dagster_run_id"] == run
    assert "no room" in payload["error"]


def test_a_run_that_failed_during_a_long_downtime_is_reported_afterwards(
    watched: Watched, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched.failed_before_it_began()
    later = now() + timedelta(hours=5)
    monkeypatch.setattr(alerts, "now", lambda: later)
    watched.tick()
    assert hook.titles == ["web_shop: sync failed"]


def test_a_run_that_dagster_retries_is_reported_only_if_the_retry_fails(
    watched: Watched, hook: Hook
) -> None:
    watched.instance.report_run_canceled(watched.run())  # which is no problem
    first = watched.failed_before_it_began(**{"dagster/will_retry": "true"})
    assert watched.tick() == "Nothing to report."
    again = watched.run(root_run_id=first, parent_run_id=first)
    watched.instance.report_run_failed(again, "No room, again.")
    watched.tick()
    assert hook.titles == ["web_shop: sync failed"]


def job_of(name: str, *events: dg.AssetCheckEvaluation, failure: dg.Failure | None = None) -> Any:
    @dg.op(out=dg.Out(dg.Nothing))
    def work(context: dg.OpExecutionContext) -> Iterator[Any]:
        yield from events
        if failure:
            raise failure
        yield dg.Output(None)

    @dg.job(name=name)
    def made() -> None:
        work()

    return made


def drift(table: str, passed: bool) -> dg.AssetCheckEvaluation:
    return dg.AssetCheckEvaluation(
        asset_key=dg.AssetKey(["web_shop", table]),
        check_name="drift",
        passed=passed,
        metadata={
            "columns": 3,
            "first_problems": dg.MetadataValue.md("- column a is gone\n- column b is text"),
            "what_to_do": "Mend it with `datalake recover`.",
        },
    )


def test_a_failed_check_is_reported_with_its_numbers_and_when_it_passes_again(
    watched: Watched, hook: Hook
) -> None:
    for passed in (True, False, False, True):
        checks = job_of("checks", drift("page", passed), drift("track_order", True))
        checks.execute_in_process(instance=watched.instance)
        watched.tick()
    assert hook.titles == [
        "web_shop: check drift failed for 1 table",
        "web_shop: check drift passes again",
    ]
    lines = hook.posts[0]["text"].splitlines()
    assert "First: web_shop.page: column a is gone; column b is text" in lines
    assert "What to do: Mend it with `datalake recover`." in lines


def test_a_check_that_stops_a_sync_is_reported_as_a_failed_sync(
    watched: Watched, hook: Hook
) -> None:
    stopped = job_of("sync_web_shop", drift("page", False), failure=dg.Failure("not published"))
    stopped.execute_in_process(instance=watched.instance, raise_on_error=False)
    watched.tick()
    assert hook.titles == ["web_shop: sync failed"]


def test_a_replay_with_wrong_parameters_is_not_reported(watched: Watched, hook: Hook) -> None:
    wrong = dg.Failure("raw files changed", {"exit_code": dg.MetadataValue.int(2)})
    job_of("replay_web_shop", failure=wrong).execute_in_process(
        instance=watched.instance, raise_on_error=False
    )
    assert watched.tick() == "Nothing to report."
    watched.failed_before_it_began("replay_ios_prod")
    watched.tick()
    assert hook.titles == ["ios_prod: replay failed"]


def test_a_source_that_cannot_be_evaluated_does_not_stop_the_others(
    watched: Watched, hook: Hook
) -> None:
    storage = watched.platform.lake.storage
    kept = storage.read(paths.alerts(WEB_SHOP.id)) or b""
    storage.write(paths.alerts(WEB_SHOP.id), NEWER_RELEASE)
    watched.failed_before_it_began()
    watched.failed_before_it_began("sync_ios_prod")
    assert "web_shop could not be evaluated" in watched.tick()
    assert hook.titles == ["ios_prod: sync failed"]
    storage.write(paths.alerts(WEB_SHOP.id), kept)
    watched.tick()
    assert hook.titles == ["ios_prod: sync failed", "web_shop: sync failed"]


@pytest.mark.parametrize(
    ("key", "owner"),
    [
        ("db/track_order", "plain"),
        ("db/ios_track_order", "prefixed"),
        ("db/ios_track_order_schema", "prefixed"),
        ("db/tables/ios_track_update_schema", "prefixed"),
        ("other/track_order", None),
        ("prefixed/raw_archive", "prefixed"),
        ("prefixed/upkeep", "prefixed"),
        ("__segment_datalake/plain_sync_reports", "plain"),
        ("db", None),
    ],
)
def test_an_asset_belongs_to_the_source_that_writes_it(key: str, owner: str | None) -> None:
    plain = {"id": "a", "slug": "plain", "database": "db"}
    prefixed = {"id": "b", "slug": "prefixed", "database": "db", "table_prefix": "ios"}
    settings = settings_of(Path("/nowhere"), plain, prefixed)
    found = owner_of(dg.AssetKey(key.split("/")), settings.sources)
    assert (found.slug if found else None) == owner
