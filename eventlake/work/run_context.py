"""What a run works with, and whom it tells."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from eventlake.catalog.base import Catalog
from eventlake.rules.clock import now
from eventlake.rules.counts import UnitReport
from eventlake.settings.models.models import Settings, Source
from eventlake.state.manifest import Manifest, RunKind
from eventlake.state.report import RunFacts
from eventlake.storage import Storage
from eventlake.work.checks import CheckResult
from eventlake.work.dataflow import Dataflow

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
