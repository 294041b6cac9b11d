"""A simulated day on the real stack: Spark, Dagster's runs and sensor, and a web hook."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import dagster as dg
import pytest
from dagster_pyspark import LazyPySparkResource
from pyspark.sql import SparkSession

from datalake_assets.assets.keys import NAMES
from datalake_assets.component import build
from datalake_assets.instance.snapshot import read_snapshot
from datalake_assets.sensors.alerts import evaluate
from eventlake.audit.audit import audit
from eventlake.audit.snapshot import Scope
from eventlake.lake import Lake
from eventlake.rules.counts import UnitReport
from eventlake.rules.errors import ServiceTrouble
from eventlake.runs.context import SILENT, SPARK_UI, Listener
from eventlake.settings.models import Source
from spark_resources.dataflow.staged import StagedDataflow
from spark_resources.engines.java import with_archive
from spark_resources.engines.local import LocalEngine
from spark_resources.engines.session import SPARK_CONFIG
from tests.support.servers.alerts import Hook
from tests.support.simulation.clock import Clock
from tests.support.simulation.machine import Machine, Synced
from tests.support.simulation.simulation import A_DAY, VISITS, WEB, Simulation

pytestmark = [
    pytest.mark.spark,
    pytest.mark.soak,
    pytest.mark.timeout(3_600),
    # Dagster's own, where a resource holds another.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


class Breakable(LocalEngine):
    """Spark, which may be gone when it is needed."""

    gone: ClassVar[bool] = False

    def dataflow(self, listener: Listener = SILENT) -> StagedDataflow:
        if self.gone:
            raise ServiceTrouble("The cluster was taken away.")
        return super().dataflow(listener)


class DagsterMachine(Machine):
    """Does everything by jobs of Dagster, in this process."""

    def begin(self, instance: dg.DagsterInstance, engine: Breakable) -> None:
        self.instance, self.engine = instance, engine
        self.cursor: str | None = None
        self.runs: list[dg.ExecuteInProcessResult] = []

    def job(self, name: str) -> dg.ExecuteInProcessResult:
        # Code locations are loaded anew when there are new tables.
        definitions = build(self.lake, read_snapshot(self.lake), self.engine)
        job = definitions.resolve_job_def(name)
        done = job.execute_in_process(instance=self.instance, raise_on_error=False)
        self.runs.append(done)
        return done

    def sync(self, source: Source) -> bool:
        Breakable.gone = source.slug in self.broken
        began, done = self.clock.now(), self.job(NAMES.sync_job(source))
        report = UnitReport() if done.success else None
        self.syncs.setdefault(source.slug, []).append(Synced(began, report, 0))
        return done.success

    def keep_up(self, source: Source) -> None:
        assert self.job(NAMES.upkeep_job(source)).success

    def check(self, source: Source) -> None:
        assert self.job(NAMES.check_tables_job(source)).success

    def look(self) -> None:
        _, self.cursor = evaluate(self.lake, self.instance, self.cursor, self.clock.now())


def ui_of(engine: Breakable) -> str | None:
    url: str | None = engine.pyspark.spark_context.uiWebUrl
    assert url is None or url.startswith("http://127.0.0.1:")
    return url


@pytest.fixture
def engine() -> Iterator[Breakable]:
    config = with_archive(SPARK_CONFIG) | {"spark.master": "local[2]"}
    yield Breakable(pyspark=LazyPySparkResource(spark_config=config))
    SparkSession.builder.getOrCreate().stop()


def test_a_day_of_twelve_syncs_a_failure_upkeep_and_checks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hook: Hook, engine: Breakable
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("DAGSTER_HOME", f"{home}")
    with dg.DagsterInstance.ephemeral() as instance:

        def make(lake: Lake, clock: Clock) -> Machine:
            machine = DagsterMachine(lake, clock)
            machine.begin(instance, engine)
            return machine

        simulation = Simulation(tmp_path / "lake", A_DAY, monkeypatch, make)
        simulation.run()
        runs = instance.get_runs(limit=1_000)
        statuses: list[Any] = [run.status for run in runs]

    assert hook.titles == ["web_shop: sync failed", "web_shop: sync recovered after 1 failure"]
    assert statuses.count(dg.DagsterRunStatus.FAILURE) == 1
    # The night after, too: of each source, upkeep and checks twice.
    assert statuses.count(dg.DagsterRunStatus.SUCCESS) == 2 * (13 + 2 + 2) - 1
    assert {run.tags[SPARK_UI] for run in runs if SPARK_UI in run.tags} == {ui_of(engine)}
    assert len(simulation.machine.syncs[WEB]) == 13
    for slug, arrivals in simulation.arrivals.items():
        assert arrivals.all_came
        rows = simulation.expected(slug).totals.row_count
        assert simulation.held(slug).total() == rows > len(VISITS)
        assert audit(simulation.lake, Scope(simulation.source(slug))).agrees
