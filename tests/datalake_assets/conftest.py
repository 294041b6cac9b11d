"""A small lake under Dagster, without Spark: the tasks run in this process, all else is real."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from eventlake.lake import Lake
from eventlake.sample import write_archive
from spark_resources.engines.base import SparkEngine
from tests.support.lakes.platform import SAMPLE, SOURCES, InProcessEngine, MakePlatform, Platform
from tests.support.lakes.settings import settings_of


@pytest.fixture
def make_platform(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakePlatform]:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    with dg.DagsterInstance.ephemeral() as instance:

        def make(engine: SparkEngine | None = None, arrived: int | None = None) -> Platform:
            root = tmp_path / "lake"
            settings = settings_of(root, *SOURCES)
            generated = write_archive(root, SAMPLE, arrived=arrived)
            return Platform(Lake.open(settings), generated, instance, engine or InProcessEngine())

        yield make


@pytest.fixture
def platform(make_platform: MakePlatform) -> Platform:
    return make_platform()
