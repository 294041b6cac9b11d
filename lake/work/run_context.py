"""What a run works with, and whom it tells."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from lake.catalog.base import Catalog
from lake.clock import now
from lake.counts import UnitReport
from lake.report import RunFacts
from lake.settings import Settings, Source
from lake.state.manifest import Manifest, RunKind
from lake.storage import Storage
from lake.work.checks import CheckResult
from lake.work.dataflow import Dataflow

__all__ = ["Listener", "Published", "RunContext", "Silent", "now"]


@dataclass(frozen=True, slots=True)
class Published:
    """One unit of work that is now in the lake."""

    manifest: Manifest
    report: UnitReport
    checks: tuple[CheckResult, ...]


class Listener(Protocol):
    """Hears of a run as it goes on."""

    def log(self, message: str) -> None: ...

    def warn(self, message: str) -> None: ...


class Silent:
    """A listener that tells nobody."""

    def log(self, message: str) -> None: ...

    def warn(self, message: str) -> None: ...


@dataclass(frozen=True)
class RunContext:
    """A run of one source; `dataflow` is called only when there is something to read."""

    settings: Settings
    source: Source
    storage: Storage
    catalog: Catalog
    kind: RunKind
    facts: RunFacts
    dataflow: Callable[[], Dataflow]
    listener: Listener

    @property
    def run_id(self) -> str:
        return self.facts.run_id
