"""Syncs on a standalone cluster: a master and workers in processes of their own."""

import os
import re
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datalake_assets.preflight import findings
from eventlake.lake import Lake
from eventlake.rules import paths
from eventlake.rules.errors import InvalidSetting
from eventlake.runs import placement
from eventlake.runs.context import SPARK_UI, Silent
from eventlake.sample import IOS_PROD, SampleSpec, write_archive
from eventlake.settings.models import Settings
from eventlake.storage import LocalStorage
from spark_resources.engines.cluster.engine import ClusterEngine, ClusterSession
from spark_resources.engines.cluster.executors import NoExecutors
from tests.support.faults.cases import SYNCS
from tests.support.faults.failing_storage import Deadly
from tests.support.faults.faults import snapshot
from tests.support.lakes.in_process import InProcess
from tests.support.lakes.jobs import drained, run
from tests.support.lakes.on_emr import Heard
from tests.support.lakes.runs import SOURCE_ID, Runs
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


def test_workers_of_later_runs_compile_no_kernel(cluster: Standalone, tmp_path: Path) -> None:
    """Each run has the same code in another folder."""
    chosen = settings(cluster, str(tmp_path))
    heard = Heard()
    for _ in range(2):
        with ClusterSession(chosen, LocalStorage(str(tmp_path)), heard) as session:
            assert session.prepared.uiWebUrl == heard.pages[SPARK_UI]
    assert heard.warnings == []
    assert re.fullmatch(
        r"Kernels of 2 workers: [1-9]\d* from the cache, 0 compiled", heard.logged[-1]
    )


def test_a_machine_that_is_lost_in_any_phase_changes_nothing(
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
    phases = ("reading", "comparing", "writing", "logging")
    runs.storage = Deadly(str(root), os.getpid(), phases)
    conf = {"spark.executorEnv.PYTHONPATH": str(ROOT)}  # the store is needed there, too
    chosen = settings(cluster, str(root), conf=conf)
    cluster.add_workers(len(phases) - 1)
    with ClusterSession(chosen, runs.storage, Silent()) as session:
        runs.flow = partial(session.dataflow, f"{paths.stage(SOURCE_ID, 'R')}/blobs")
        case.step(runs)

    assert set(phases) <= set(os.listdir(root))
    assert snapshot(Runs(root)) == snapshot(lakes["whole"])
    dead = [worker for worker in cluster.workers if worker.process.poll() is not None]
    assert len(dead) == len(phases)
    injected["machine of a cluster killed"] += len(phases)


def test_the_check_tests_the_cluster_as_runs_use_it(cluster: Standalone, tmp_path: Path) -> None:
    write_archive(tmp_path, SAMPLE)
    lake = Lake.open(settings(cluster, str(tmp_path)))
    found = {one.what: one.message for one in findings(lake, lake.settings.sources)}
    assert found["Spark master"].startswith(f"{cluster.url} answers")
    assert re.fullmatch(r"\d+ executors? with \d+ cores? in all", found["Spark executors"])
    assert found["Python of the workers"].endswith("with the packages that are installed here")
    assert found["storage, from there"].endswith(
        "segment-stage/ can be written, read, listed and cleared"
    )


@pytest.mark.parametrize(
    ("spark", "wait_seconds", "message"),
    [
        (
            {"conf": {"spark.executor.memory": "64g"}},
            3.0,
            "gave no executor for 0.05 minutes. .*free: an executor needs 1 GB",
        ),
        ({"python": "/nowhere/python3.11"}, 60.0, "cannot run '/nowhere/python3.11' .*No such"),
    ],
)
def test_a_cluster_that_cannot_run_jobs_is_refused(
    cluster: Standalone, tmp_path: Path, spark: dict[str, Any], wait_seconds: float, message: str
) -> None:
    chosen, storage = settings(cluster, str(tmp_path), **spark), LocalStorage(str(tmp_path))
    with (
        pytest.raises((InvalidSetting, NoExecutors), match=message),
        ClusterSession(chosen, storage, Silent(), wait_seconds) as session,
    ):
        _ = session.prepared
