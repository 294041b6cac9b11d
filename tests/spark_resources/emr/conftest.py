"""A lake in a bucket, a standing cluster beside it, and the engine that uses both."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from datalake_assets.running import new_job
from lake import paths
from lake.lake import Lake
from lake.settings import Settings
from lake.work.run_context import Published
from spark_resources.emr.pace import Pace
from spark_resources.emr.run import EmrRun
from spark_resources.emr.shipping.environment import Target, environment_version
from tests.aws_server import AwsServer
from tests.emr_cluster import PYTHON, LocalEmr, local_emr, without_spark

SOURCE = {"id": "S1", "slug": "shop"}


@dataclass(frozen=True)
class Quick(Pace):
    """Steps of tests take seconds. `meanwhile` is done between two looks at them."""

    messages_seconds: float = 0.2
    step_seconds: float = 0.5
    cluster_seconds: float = 1.0
    cancel_seconds: float = 5.0
    meanwhile: Callable[[], None] = lambda: None

    def sleep(self, seconds: float) -> None:
        super().sleep(min(seconds, 0.2))
        self.meanwhile()


@dataclass
class Heard:
    """A listener that remembers."""

    logged: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def log(self, message: str) -> None:
        self.logged.append(message)

    def warn(self, message: str) -> None:
        self.warnings.append(message)


@dataclass
class EmrLake:
    """Runs of one source on EMR, without Dagster around them."""

    lake: Lake
    emr: LocalEmr
    cluster_id: str
    heard: Heard = field(default_factory=Heard)

    def job(self, **what: Any) -> Any:
        return new_job(self.lake.settings, self.lake.settings.sources[0], "dagster-run", **what)

    def change(self, **settings: Any) -> None:
        """Other settings from now on."""
        before = self.lake.settings.model_dump(exclude_unset=True) | {"sources": [SOURCE]}
        self.lake = Lake.open(Settings.model_validate(before | settings))

    def run(self, pace: Pace | None = None, **what: Any) -> Iterator[Published]:
        return EmrRun(self.job(**what), self.heard, PYTHON, pace or Quick()).units()

    def put_raw(self, day_folder: str, name: str, *lines: bytes) -> None:
        path = f"{paths.raw_root('S1')}/{day_folder}/{name}"
        self.lake.storage.write(path, b"\n".join(lines) + b"\n")

    def files(self, folder: str) -> list[str]:
        return [file.path for file in self.lake.storage.files(folder)]


@pytest.fixture
def emr(aws: AwsServer, tmp_path: Path) -> Iterator[LocalEmr]:
    with local_emr(aws, tmp_path / "emr", without_spark) as emr:
        yield emr


@pytest.fixture
def emr_lake(aws: AwsServer, emr: LocalEmr) -> EmrLake:
    bucket = aws.bucket()
    cluster_id = emr.start_cluster(bucket)
    settings = {
        "workspace_id": "WS",
        "storage": f"s3://{bucket}/lakes/one",
        "engine": "emr",
        "emr_cluster_id": cluster_id,
        "iam_role_arn": aws.role(external_id="WS"),
        "sources": [SOURCE],
    }
    lake = Lake.open(Settings.model_validate(settings))
    # What is shipped is shown elsewhere; jobs without Spark run in the environment of the tests.
    shipped = paths.shipped_code(environment_version(Target(python=PYTHON)))
    lake.storage.write(f"{shipped}/environment.zip", b"")
    return EmrLake(lake, emr, cluster_id)
