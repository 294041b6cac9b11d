"""Engines as resources of Dagster: their fields show the settings, and replace them."""

from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from datalake_assets.assets.running import new_job
from eventlake.settings.models import Settings
from spark_resources.dataflow.job import LakeJob
from spark_resources.engines.base import engine_of
from spark_resources.engines.cluster.engine import ClusterEngine
from spark_resources.engines.emr.engine import EmrEngine
from tests.support.lakes.settings import settings_of

ON_EMR = {
    "engine": "emr",
    "emr_cluster_id": "j-1ABCDEF",
    "region": "eu-west-1",
    "catalog": "glue",
}
OWN = {"id": "b", "slug": "own", "emr_cluster_id": "j-2ABCDEF", "region": "eu-central-1"}


def job_of(settings: Settings) -> LakeJob:
    return new_job(settings, settings.sources[0], "")


def settings_with(root: Path | str, **more: Any) -> Settings:
    return settings_of(root, {"id": "a", "slug": "web"}, OWN, **more)


def test_the_engine_of_the_settings_shows_them_and_changes_nothing() -> None:
    settings = settings_with("s3://bucket/lake", **ON_EMR)
    engine = engine_of(settings)
    assert isinstance(engine, EmrEngine)
    assert (engine.cluster_id, engine.region) == ("j-1ABCDEF", "eu-west-1")
    assert engine.configured(job_of(settings)).settings == job_of(settings).settings


def test_fields_replace_settings_except_those_set_for_a_source(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CLUSTER", "j-3ABCDEF")
    found: list[Settings] = []

    @dg.op
    def look(engine: EmrEngine) -> None:
        job = job_of(settings_with("s3://bucket/lake", **ON_EMR))
        found.append(engine.configured(job).settings)

    @dg.job(resource_defs={"engine": EmrEngine(cluster_id=dg.EnvVar("CLUSTER"))})
    def look_once() -> None:
        look()

    assert look_once.execute_in_process().success
    [settings] = found
    assert [s.emr_cluster_id for s in settings.sources] == ["j-3ABCDEF", "j-2ABCDEF"]
    assert [s.region for s in settings.sources] == ["eu-west-1", "eu-central-1"]


def test_a_cluster_has_its_master_and_spark_properties(tmp_path: Path) -> None:
    spark = {"conf": {"spark.cores.max": "4"}, "wait_minutes": 3}
    settings = settings_with(tmp_path, engine="spark://one:7077", spark=spark)
    engine = engine_of(settings)
    assert isinstance(engine, ClusterEngine)
    assert (engine.master, engine.wait_minutes) == ("spark://one:7077", 3)
    assert engine.configured(job_of(settings)).settings == job_of(settings).settings

    other = ClusterEngine(master="spark://two:7077", conf={"spark.executor.memory": "2g"})
    changed = other.configured(job_of(settings)).settings
    assert changed.engine == "spark://two:7077"
    assert changed.spark.conf == {"spark.cores.max": "4", "spark.executor.memory": "2g"}
    assert changed.spark.wait_minutes == 3
