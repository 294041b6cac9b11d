"""A terminal in an empty folder; a lake that two syncs of the sample have filled."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from eventlake.sample import write_archive
from spark_resources.engines.base import SparkEngine
from tests.support.lakes.jobs import SAMPLE, SETTINGS, SampleLake
from tests.support.lakes.platform import InProcessEngine
from tests.support.terminal import Terminal


@pytest.fixture(autouse=True)
def terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Terminal:
    """In a folder of its own, with nothing of the developer's in the environment."""
    for name in ("DAGSTER_HOME", "DATALAKE_CONFIG", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.setenv(name, "")  # so that what a command sets is taken back after the test
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return Terminal(capsys)


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
    """Two days, a sync after each: in the folder that the terminal is in, and free to change."""
    shutil.copytree(_filled.folder, tmp_path, dirs_exist_ok=True)
    return SampleLake(tmp_path, _filled.account)


@pytest.fixture
def unsynced(tmp_path: Path) -> SampleLake:
    """An archive that nobody has loaded yet."""
    (tmp_path / "lake.yaml").write_text(SETTINGS)
    return SampleLake(tmp_path, write_archive(tmp_path / "data", SAMPLE))


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[SparkEngine]]:
    """Dagster as it is, but no Spark below it."""
    monkeypatch.setattr("spark_resources.engines.local.local_engine", InProcessEngine)
    yield InProcessEngine
