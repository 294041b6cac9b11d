"""Runs of one source on the local EMR, without Dagster."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any, Self

from moto.emrserverless.models import JobRun
from pydantic import PrivateAttr

from datalake_assets.assets.running import new_job
from eventlake.lake import Lake
from eventlake.rules import paths
from eventlake.runs.context import Published
from eventlake.runs.unit import Window
from eventlake.settings.models import Settings
from spark_resources.dataflow.job import LakeJob
from spark_resources.engines.base import SparkEngine
from spark_resources.engines.emr.engine import EmrEngine
from spark_resources.engines.emr.serverless import EmrServerlessEngine
from spark_resources.engines.remote.service import Pace
from tests.support.servers.emr_cluster import LocalEmr
from tests.support.servers.emr_node import PYTHON
from tests.support.servers.emr_serverless import LocalServerless

SOURCE = {"id": "S1", "slug": "shop"}


EVENT = (
    '{"type":"track","event":"Order","messageId":"%s-%d","receivedAt":"%sT05:00:00Z",'
    '"properties":{"price":%d}}'
)


BOTH_DAYS = Window(datetime(2026, 10, 1, tzinfo=UTC), datetime(2026, 10, 3, tzinfo=UTC))


@dataclass(frozen=True)
class Quick(Pace):
    """Steps of tests take seconds. `meanwhile` is done between two looks at them."""

    messages_seconds: float = 0.2
    status_seconds: float = 0.5
    cluster_seconds: float = 1.0
    cancel_seconds: float = 5.0
    meanwhile: Callable[[], None] = lambda: None

    def sleep(self, seconds: float) -> None:
        super().sleep(min(seconds, 0.2))
        self.meanwhile()


class _Paced(SparkEngine):
    """An engine with the pace of a test."""

    _pace: Pace = PrivateAttr(default_factory=Quick)

    def at(self, pace: Pace) -> Self:
        self._pace = pace
        return self

    def pace(self) -> Pace:
        return self._pace


class PacedEmr(_Paced, EmrEngine):
    """Steps of tests."""


class PacedServerless(_Paced, EmrServerlessEngine):
    """Job runs of tests."""


@dataclass
class Heard:
    """A listener that remembers."""

    logged: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    pages: dict[str, str] = field(default_factory=dict)

    def log(self, message: str) -> None:
        self.logged.append(message)

    def warn(self, message: str) -> None:
        self.warnings.append(message)

    def page(self, name: str, url: str) -> None:
        self.pages[name] = url


@dataclass
class RemoteLake:
    """Runs of one source on a service, without Dagster around them."""

    lake: Lake
    heard: Heard = field(default_factory=Heard, init=False)

    def engine(self, pace: Pace) -> SparkEngine:
        raise NotImplementedError

    def job(self, **what: Any) -> Any:
        return new_job(self.lake.settings, self.lake.settings.sources[0], "dagster-run", **what)

    def change(self, **settings: Any) -> None:
        """Other settings from now on."""
        before = self.lake.settings.model_dump(exclude_unset=True) | {"sources": [SOURCE]}
        self.lake = Lake.open(Settings.model_validate(before | settings))

    def run(self, pace: Pace | None = None, **what: Any) -> Iterator[Published]:
        return self.run_job(self.job(**what), pace)

    def run_job(self, job: LakeJob, pace: Pace | None = None) -> Iterator[Any]:
        return self.engine(pace or Quick()).run(job, self.heard)

    def put_raw(self, day_folder: str, name: str, *lines: bytes) -> None:
        path = f"{paths.raw_root('S1')}/{day_folder}/{name}"
        self.lake.storage.write(path, b"\n".join(lines) + b"\n")

    def put_day(self, day: str, rows: int) -> None:
        """A raw file with some orders of a day."""
        lines = [(EVENT % (day, n, day, n)).encode() for n in range(rows)]
        self.put_raw(paths.day_folder(date.fromisoformat(day)), "a.json", *lines)

    def report(self) -> list[dict[str, Any]]:
        """The lines of the newest report."""
        path = max(self.files(paths.reports_root()))
        return [json.loads(line) for line in (self.lake.storage.read(path) or b"").splitlines()]

    def files(self, folder: str) -> list[str]:
        return [file.path for file in self.lake.storage.files(folder)]


@dataclass
class EmrLake(RemoteLake):
    """Runs on a standing cluster, or on one of their own."""

    emr: LocalEmr
    cluster_id: str
    conf: dict[str, str] = field(default_factory=dict)

    def engine(self, pace: Pace) -> SparkEngine:
        return PacedEmr(python=PYTHON, conf=self.conf).at(pace)


@dataclass
class ServerlessLake(RemoteLake):
    """Runs of an application on EMR Serverless."""

    serverless: LocalServerless
    application_id: str
    conf: dict[str, str] = field(default_factory=dict)

    def engine(self, pace: Pace) -> SparkEngine:
        return PacedServerless(python=PYTHON, conf=self.conf).at(pace)

    @property
    def runs(self) -> list[JobRun]:
        return self.serverless.runs(self.application_id)
