"""A running deployment: the processes of compose, a schedule every minute, sensors on."""

from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from eventlake.lake import Lake
from eventlake.settings.file import load_settings
from tests.support.lakes.archive import Archive, order, page
from tests.support.lakes.settings import lake_in
from tests.support.servers.deployment import Deployment, deployed
from tests.support.servers.postgres import Postgres, running_postgres

RUNS = """{ runsOrError(limit: 1000) { ... on Runs { results {
    runId jobName status tags { key value } } } } }"""
INSTIGATORS = """{ repositoriesOrError { ... on RepositoryConnection { nodes {
    schedules { name scheduleState { status ticks(limit: 200) { status error { message } } } }
    sensors { name sensorState { status ticks(limit: 200) { status error { message } } } }
} } } }"""
DAEMONS = "{ instance { daemonHealth { allDaemonStatuses { daemonType required healthy } } } }"
ASSETS = "{ assetNodes { assetKey { path } } }"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Settings, and a raw file of two orders."""
    lake_in(tmp_path, schedule="* * * * *", first_sync_hours=0)
    arrive(tmp_path, "a", order("m1", now(), n=1), order("m2", now(), n=2))
    return tmp_path


def now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M}"


def arrive(folder: Path, name: str, *events: dict[str, Any]) -> None:
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    Archive(folder / "data/segment-logs/S1").day(today).file(name, *events)


def rows(folder: Path, table: str) -> int:
    catalog = Lake.open(load_settings(None, {}, folder)).catalog
    if catalog.table("shop", table) is None:
        return 0
    return sum(partition.rows for partition in catalog.partitions("shop", table))


def runs(deployment: Deployment) -> list[Any]:
    found: list[Any] = deployment.ask(RUNS)["runsOrError"]["results"]
    return found


def statuses(deployment: Deployment) -> Counter[str]:
    return Counter(run["status"] for run in runs(deployment))


def ticks(deployment: Deployment) -> dict[str, Counter[str]]:
    """How the ticks of each schedule and sensor that is on have ended."""
    [repository] = deployment.ask(INSTIGATORS)["repositoriesOrError"]["nodes"]
    states = {one["name"]: one["scheduleState"] for one in repository["schedules"]}
    states |= {one["name"]: one["sensorState"] for one in repository["sensors"]}
    return {
        name: Counter(tick["status"] for tick in state["ticks"])
        for name, state in states.items()
        if state["status"] == "RUNNING"
    }


def assert_healthy(deployment: Deployment) -> None:
    found = deployment.ask(DAEMONS)["instance"]["daemonHealth"]["allDaemonStatuses"]
    required = {one["daemonType"]: one["healthy"] for one in found if one["required"]}
    assert {"SCHEDULER", "SENSOR", "QUEUED_RUN_COORDINATOR", "MONITORING"} <= required.keys()
    assert all(required.values()), required


def wait_for_the_first_sync(deployment: Deployment) -> None:
    """It comes by the schedule, through the queue, and runs in the code server."""
    deployment.wait_for("UI", lambda: deployment.ask("{ version }"), 240)
    deployment.wait_for("sync", lambda: statuses(deployment)["SUCCESS"], 600)
    assert rows(deployment.folder, "track_order") == 2
    first = runs(deployment)[-1]
    assert first["jobName"] == "sync_shop"
    tags = {tag["key"]: tag["value"] for tag in first["tags"]}
    assert tags["datalake/source"] == "shop"


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with running_postgres() as server:
        yield server


@pytest.mark.e2e
@pytest.mark.timeout(900)
def test_a_deployment_on_postgres_syncs_by_its_schedule(folder: Path, postgres: Postgres) -> None:
    with deployed(folder, postgres.url) as deployment:
        wait_for_the_first_sync(deployment)
        assert_healthy(deployment)
    assert not list((folder / "home").rglob("*.db"))
    [(booked,)] = postgres.ask("SELECT count(*) FROM runs")
    assert booked >= 1
    assert "Traceback" not in deployment.log("daemon")


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kept_in", ["SQLite", "Postgres"])
def test_a_deployment_runs_for_minutes(folder: Path, kept_in: str) -> None:
    """Ticks every minute load new events and a new table."""
    with (
        running_postgres() if kept_in == "Postgres" else nullcontext() as server,
        deployed(folder, server.url if server else None) as deployment,
    ):
        wait_for_the_first_sync(deployment)
        arrive(folder, "b", page("m3", now()), order("m4", now(), n=3))
        deployment.wait_for("rows of a new table", lambda: rows(folder, "page") or None, 600)

        def page_is_an_asset() -> bool:
            nodes = deployment.ask(ASSETS)["assetNodes"]
            return ["shop", "page"] in [node["assetKey"]["path"] for node in nodes]

        deployment.wait_for("new asset", page_is_an_asset, 600)

        def four_ticks() -> bool:
            return ticks(deployment)["sync_shop_schedule"]["SUCCESS"] >= 4

        deployment.wait_for("four ticks of the schedule", four_ticks, 900)

        assert_healthy(deployment)
        ended = statuses(deployment)
        assert ended["FAILURE"] == 0 and ended["CANCELED"] == 0
        by_name = ticks(deployment)
        assert {"dead_runs", "reload_for_new_tables", "first_syncs"} <= by_name.keys()
        assert sum(counted["FAILURE"] for counted in by_name.values()) == 0, by_name
        assert all(counted.total() for name, counted in by_name.items() if name == "dead_runs")
        assert rows(folder, "track_order") == 3 and rows(folder, "page") == 1
