"""Syncs on a standalone cluster: a master and workers in processes of their own."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datalake_assets.preflight import findings
from eventlake.lake import Lake
from eventlake.rules.errors import InvalidSetting
from eventlake.runs import placement
from eventlake.runs.context import Silent
from eventlake.sample import IOS_PROD, SampleSpec, write_archive
from eventlake.settings.models import Settings
from spark_resources.engines.cluster.engine import ClusterEngine, ClusterSession
from tests.support.faults.cases import SYNCS
from tests.support.faults.failing_storage import Deadly
from tests.support.faults.faults import snapshot
from tests.support.lakes.in_process import InProcess
from tests.support.lakes.jobs import drained, run
from tests.support.lakes.runs import Runs
from tests.support.lakes.settings import settings_of
from tests.support.repo import ROOT, injected
from tests.support.servers.aws import AwsServer
from tests.support.standalone_cluster import Standalone, standalone

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]
SAMPLE = SampleSpec(days=1, events_per_day=200, files_per_day=4, hours=3)


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, aws_server: AwsServer
) -> Iterator[Standalone]:
    """Whose workers may use S3, and can be lost."""
    folder = tmp_path_factory.mktemp("cluster")
    with standalone(folder, workers=2, environment=aws_server.environment) as cluster:
        yield cluster


def settings(cluster: Standalone, storage: str, **spark: Any) -> Settings:
    python = {"python": sys.executable, **spark}
    return settings_of(storage, IOS_PROD, engine=cluster.url, spark=python)


@pytest.fixture
def bare_python(tmp_path: Path) -> Path:
    """A Python with nothing installed."""
    script = tmp_path / "bare-python"
    base = getattr(sys, "_base_executable", sys.executable)
    script.write_text(f'#!/bin/sh\nexec {base} -S "$@"\n')
    script.chmod(0o755)
    return script


def content(lake: Lake) -> dict[str, Any]:
    """Every table with its columns and rows, and what became of each record."""
    found: dict[str, Any] = {}
    for table in lake.catalog.tables(IOS_PROD.slug):
        found[table.name] = [table.columns]
        for partition in lake.catalog.partitions(IOS_PROD.slug, table.name):
            rows = _read(lake, partition.location).sort_by("message_id").to_pylist()
            found[table.name] += [(partition.values, rows)]
    log = _read(lake, "sync_tracking_datasets").select(["raw_file", "raw_line", "status"])
    return found | {"records": sorted(map(repr, log.to_pylist()))}


def _read(lake: Lake, folder: str) -> pa.Table:
    tables = []
    for file in lake.storage.files(folder):
        if file.name.endswith(".parquet"):
            with lake.storage.open_input(file.path) as stream:
                tables.append(pq.ParquetFile(stream).read())
    return pa.concat_tables(tables, promote_options="default")


def test_workers_without_packages_make_the_same_lake_on_s3(
    cluster: Standalone, aws: AwsServer, tmp_path: Path, bare_python: Path
) -> None:
    write_archive(tmp_path / "here", SAMPLE)
    here = Lake.open(settings(cluster, str(tmp_path / "here")))
    drained(here.settings)

    there = Lake.open(settings(cluster, f"s3://{aws.bucket()}/x", python=str(bare_python)))
    for file in here.storage.files("segment-logs"):
        there.storage.write(file.path, here.storage.read(file.path) or b"")
    done = run(ClusterEngine(), there)

    assert done.row_count > 0
    assert content(there) == content(here)
    assert there.storage.files("segment-stage") == []
    assert run(ClusterEngine(), there).row_count == 0


def test_machines_that_are_lost_on_the_way_change_nothing(
    cluster: Standalone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placement, "SPLIT_BYTES", 220)  # small lakes have several files, too
    monkeypatch.setattr(InProcess, "slots", 2)
    case = SYNCS[1]
    lakes = {name: Runs(tmp_path / name) for name in ("whole", "hurt")}
    for runs in lakes.values():
        case.before(runs)
    case.step(lakes["whole"])

    root = tmp_path / "hurt"
    runs = lakes["hurt"]
    runs.storage = Deadly(str(root), os.getpid())
    conf = {"spark.executorEnv.PYTHONPATH": str(ROOT)}  # the store is needed there, too
    chosen = settings(cluster, str(root), conf=conf)
    cluster.add_workers(1)
    with ClusterSession(chosen, runs.storage, Silent()) as session:
        runs.flow = session.dataflow
        case.step(runs)

    assert {"reading", "writing"} <= set(os.listdir(root))
    assert snapshot(Runs(root)) == snapshot(lakes["whole"])
    dead = [worker for worker in cluster.workers if worker.process.poll() is not None]
    assert len(dead) == 2
    injected["machine of a cluster killed"] += 2


def test_the_check_looks_at_the_cluster_as_runs_will_use_it(
    cluster: Standalone, tmp_path: Path
) -> None:
    write_archive(tmp_path, SAMPLE)
    lake = Lake.open(settings(cluster, str(tmp_path)))
    found = {one.what: one.message for one in findings(lake, lake.settings.sources)}
    assert found["Spark master"].startswith(f"{cluster.url}, ")
    assert found["Spark executors"].endswith("each with 1 core and 1,024 MB")
    assert found["Python of the workers"].endswith("with the packages that are installed here")
    assert found["storage, from there"].endswith(
        "segment-stage/ can be written, read, listed and cleared"
    )


@pytest.mark.parametrize(
    ("spark", "told"),
    [
        ({"conf": {"spark.executor.memory": "64g"}}, "no worker of .* has room for an executor"),
        ({"python": "/nowhere/python3.11"}, "cannot run '/nowhere/python3.11' .*No such file"),
    ],
)
def test_a_cluster_that_cannot_do_it_is_refused(
    cluster: Standalone, tmp_path: Path, spark: dict[str, Any], told: str
) -> None:
    write_archive(tmp_path, SAMPLE)
    lake = Lake.open(settings(cluster, str(tmp_path), **spark))
    with pytest.raises(InvalidSetting, match=told):
        run(ClusterEngine(), lake)
