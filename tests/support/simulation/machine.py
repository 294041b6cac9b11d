"""The machine that looks after the lake: syncs, upkeep, checks and alerts, when they are due."""

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from eventlake.alerts.delivery import Evaluation
from eventlake.alerts.run_status import CheckRun, Verdict
from eventlake.checks.freshness import check_freshness
from eventlake.checks.published import TableChecks
from eventlake.lake import Lake
from eventlake.load.blobs import Shares
from eventlake.load.write import LoadedFile, LoadJob
from eventlake.rules.clock import new_run_id
from eventlake.rules.counts import UnitReport
from eventlake.rules.errors import ServiceTrouble
from eventlake.rules.schedules import next_due
from eventlake.runs.context import Dataflow, RunContext
from eventlake.runs.replay import replay
from eventlake.runs.sync import sync_units
from eventlake.runs.unit import Window
from eventlake.runs.verify import CheckResult, Severity
from eventlake.settings.models import Source
from eventlake.state.first_seen import first_sync_due
from eventlake.state.manifest import RunKind
from eventlake.state.report import RunFacts
from eventlake.upkeep.upkeep import upkeep, upkeep_context
from tests.support.lakes.in_process import InProcess
from tests.support.simulation.clock import Clock

IN_THE_NIGHT = "30 3 * * *"
AFTER_THAT = "30 4 * * *"
UTC_ZONE = "UTC"


class Broken(InProcess):
    """Writes its files, and fails then."""

    def load(self, job: LoadJob, shares: Shares) -> list[LoadedFile]:
        super().load(job, shares)
        raise ServiceTrouble("The cluster was taken away.")


@dataclass
class Due:
    """Something that is done by a schedule; times that were missed come as one."""

    schedule: str
    zone: str
    at: datetime

    @classmethod
    def after(cls, now: datetime, schedule: str, zone: str = UTC_ZONE) -> "Due":
        due = next_due(schedule, zone, now)
        assert due is not None
        return cls(schedule, zone, due)

    def has_come(self, now: datetime) -> bool:
        """Whether it is to be done now; a clock that was set back does not repeat anything."""
        if now < self.at:
            return False
        self.at = Due.after(now, self.schedule, self.zone).at
        return True


@dataclass(frozen=True)
class Synced:
    """A sync by schedule: when, and what it did; None if it failed."""

    at: datetime
    report: UnitReport | None
    units: int


@dataclass
class Machine:
    """One process for everything; `broken` are sources whose syncs fail."""

    lake: Lake
    clock: Clock
    flow: Callable[[], Dataflow] = InProcess
    broken: set[str] = field(default_factory=set)
    syncs: dict[str, list[Synced]] = field(default_factory=dict)  # by slug
    failed_checks: Counter[tuple[str, str]] = field(default_factory=Counter)
    warnings: list[str] = field(default_factory=list)
    _due: dict[str, Due] = field(default_factory=dict)
    _judged: dict[str, list[CheckRun]] = field(default_factory=dict)  # and not looked at yet

    def __post_init__(self) -> None:
        now = self.clock.now()
        for source in self.lake.settings.sources:
            self._due[f"sync {source.slug}"] = Due.after(
                now, source.schedule, source.schedule_timezone
            )
            self._due[f"upkeep {source.slug}"] = Due.after(now, IN_THE_NIGHT)
            self._due[f"checks {source.slug}"] = Due.after(now, AFTER_THAT)

    def work(self, synced: Callable[[Source], None]) -> None:
        """All that is due now; tells of each sync that finished."""
        now = self.clock.now()
        self.look()
        for source in self.lake.settings.sources:
            due = self._due[f"sync {source.slug}"].has_come(now) and self._may_begin(source)
            if due and self.sync(source):
                synced(source)
            if self._due[f"upkeep {source.slug}"].has_come(now):
                self.keep_up(source)
            if self._due[f"checks {source.slug}"].has_come(now):
                self.check(source)

    def _may_begin(self, source: Source) -> bool:
        due = first_sync_due(self.lake.storage, source, self.clock.now())
        return due is None or due <= self.clock.now()

    def sync(self, source: Source) -> bool:
        """Load what is new; whether that succeeded."""
        began, units = self.clock.now(), 0
        report: UnitReport | None = UnitReport()
        try:
            for unit in sync_units(self._context(source)):
                units, report = units + 1, unit.manifest.report
        except ServiceTrouble:
            units, report = 0, None
        self.syncs.setdefault(source.slug, []).append(Synced(began, report, units))
        return report is not None

    def replay(self, source: Source, window: Window) -> UnitReport:
        return replay(self._context(source, window), window)

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

    def _context(self, source: Source, window: Window | None = None) -> RunContext:
        facts = RunFacts(
            workspace_id=self.lake.settings.workspace_id,
            source_id=source.id,
            database=source.database,
            run_id=new_run_id(),
            start_time=self.clock.now(),
            s3_bucket=self.lake.settings.bucket,
            replay=window is not None,
            replay_from=window.start if window else None,
            replay_to=window.end if window else None,
        )
        return RunContext(
            self.lake.settings,
            source,
            self.lake.storage,
            self.lake.catalog,
            RunKind.REPLAY if window else RunKind.SYNC,
            facts,
            Broken if source.slug in self.broken else self.flow,
            self,
        )

    def log(self, message: str) -> None:
        pass

    def warn(self, message: str) -> None:
        self.warnings.append(f"{self.clock.now():%Y-%m-%dT%H:%M} {message}")


def _verdict(result: CheckResult) -> Verdict:
    warning = result.severity is Severity.WARN
    return Verdict(result.table, result.check, result.passed, warning, str(result))
