"""Commands run in an empty folder; a lake that two syncs of the sample have filled."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from eventlake.sample import write_archive
from spark_resources.engines.base import SparkEngine
from tests.support.lakes.jobs import SAMPLE, SETTINGS, SampleLake
from tests.support.lakes.platform import InProcessEngine


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder; nothing of the developer's is in it or in the environment."""
    for name in ("DAGSTER_HOME", "DATALAKE_CONFIG", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.setenv(name, "")  # so that what a command sets is taken back after the test
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def settings_file(folder: Path) -> Path:
    """Settings of the sample's two sources, and nothing else."""
    (folder / "lake.yaml").write_text(SETTINGS)
    return folder / "lake.yaml"


@pytest.fixture
def no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "no-java"))


@pytest.fixture(scope="session")
def _filled(tmp_path_factory: pytest.TempPathFactory) -> SampleLake:
    folder = tmp_path_factory.mktemp("sample")
    (folder / "lake.yaml").write_text(SETTINGS)
    for day in (1, 2):
        sample = SampleLake(folder, write_archive(folder / "data", SAMPLE, arrived=day))
        sample.sync(dagster_run_id=f"dagster-{day}")
    return sample


@pytest.fixture
def filled(_filled: SampleLake, tmp_path: Path) -> SampleLake:
    """Two days, a sync after each: a copy in the current folder."""
    shutil.copytree(_filled.folder, tmp_path, dirs_exist_ok=True)
    return SampleLake(tmp_path, _filled.generated)


@pytest.fixture
def unsynced(settings_file: Path) -> SampleLake:
    """The archive before the first sync."""
    return SampleLake(settings_file.parent, write_archive(settings_file.parent / "data", SAMPLE))


@pytest.fixture
def empty_archive(settings_file: Path) -> None:
    for source in SAMPLE.sources:
        (settings_file.parent / "data/segment-logs" / source.id).mkdir(parents=True)


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[SparkEngine]]:
    """Dagster as it is, without Spark."""
    monkeypatch.setattr("spark_resources.engines.local.local_engine", InProcessEngine)
    yield InProcessEngine
