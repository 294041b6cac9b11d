"""The machine that runs syncs, upkeep, checks and alerts when they are due."""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from datalake_assets.assets.running import new_job
from eventlake.alerts.delivery import Evaluation
from eventlake.alerts.run_status import CheckRun, Verdict
from eventlake.checks.freshness import check_freshness
from eventlake.checks.published import TableChecks
from eventlake.lake import Lake
from eventlake.rules.clock import new_run_id
from eventlake.rules.counts import UnitReport
from eventlake.rules.errors import ServiceTrouble
from eventlake.rules.schedules import next_due
from eventlake.runs.context import Dataflow, Published, Silent
from eventlake.runs.verify import CheckResult, Severity
from eventlake.settings.models import Source
from eventlake.state.source_state import first_sync_due
from eventlake.upkeep.upkeep import upkeep, upkeep_context
from spark_resources.dataflow.job import run_job
from tests.support.faults.flows import Raises, flow
from tests.support.lakes.in_process import InProcess
from tests.support.simulation.clock import Clock

IN_THE_NIGHT = "30 3 * * *"
AFTER_THAT = "30 4 * * *"


FAILING = flow(after_load=Raises(ServiceTrouble("The cluster was taken away.")))


@dataclass(frozen=True)
class Synced:
    """A sync by schedule: when, and what it did; None if it failed."""

    at: datetime
    report: UnitReport | None
    units: int


@dataclass
class Machine(Silent):
    """One process for everything; `broken` are sources whose syncs fail."""

    lake: Lake
    clock: Clock
    flow: Callable[[], Dataflow] = InProcess
    broken: set[str] = field(default_factory=set)
    syncs: dict[str, list[Synced]] = field(default_factory=dict)  # by slug
    failed_checks: Counter[tuple[str, str]] = field(default_factory=Counter)
    warnings: list[str] = field(default_factory=list)
    _due: dict[str, datetime | None] = field(default_factory=dict)
    _judged: dict[str, list[CheckRun]] = field(default_factory=dict)  # and not looked at yet

    def work(self, synced: Callable[[Source], None]) -> None:
        """All that is due now; calls back for each sync that finished."""
        self.look()
        for source in self.lake.settings.sources:
            slug = source.slug
            due = self._is_due(f"sync {slug}", source.schedule, source.schedule_timezone)
            if due and self._may_begin(source) and self.sync(source):
                synced(source)
            if self._is_due(f"upkeep {slug}", IN_THE_NIGHT):
                self.keep_up(source)
            if self._is_due(f"checks {slug}", AFTER_THAT):
                self.check(source)

    def _is_due(self, what: str, schedule: str, zone: str = "UTC") -> bool:
        """Missed times count as one; a clock that was set back does not repeat anything."""
        now = self.clock.now()
        due = self._due.setdefault(what, next_due(schedule, zone, now))
        assert due is not None
        if now < due:
            return False
        self._due[what] = next_due(schedule, zone, now)
        return True

    def _may_begin(self, source: Source) -> bool:
        due = first_sync_due(self.lake.storage, source, self.clock.now())
        return due is None or due <= self.clock.now()

    def sync(self, source: Source) -> bool:
        """Load what is new; whether that succeeded."""
        began, units = self.clock.now(), 0
        report: UnitReport | None = UnitReport()
        try:
            for unit in self.run(source):
                units, report = units + 1, unit.manifest.report
        except ServiceTrouble:
            units, report = 0, None
        self.syncs.setdefault(source.slug, []).append(Synced(began, report, units))
        return report is not None

    def run(self, source: Source, **what: Any) -> Iterator[Published]:
        job = new_job(self.lake.settings, source, "", **what)
        return run_job(job, FAILING if source.slug in self.broken else self.flow, self)

    def keep_up(self, source: Source) -> None:
        upkeep(upkeep_context(self.lake, source, self), self.clock.now())

    def check(self, source: Source) -> None:
        now = self.clock.now()
        checks = TableChecks(self.lake, source, now, wait=lambda _: None)
        results = [*checks.run(), check_freshness(self.lake, source, now)]
        for result in results:
            if not result.passed:
                self.failed_checks[source.slug, result.check] += 1
        run = CheckRun(f"checks-{new_run_id()}", now, tuple(map(_verdict, results)))
        self._judged.setdefault(source.slug, []).append(run)

    def look(self) -> None:
        """As the sensor of alerts does, for every source."""
        evaluation = Evaluation(self.lake, self.clock.now(), os.environ)
        for source in self.lake.settings.sources:
            evaluation.evaluate(source, check_runs=self._judged.pop(source.slug, ()))

    def log(self, message: str) -> None:
        pass

    def warn(self, message: str) -> None:
        self.warnings.append(f"{self.clock.now():%Y-%m-%dT%H:%M} {message}")


def _verdict(result: CheckResult) -> Verdict:
    warning = result.severity is Severity.WARN
    return Verdict(result.table, result.check, result.passed, warning, str(result))
