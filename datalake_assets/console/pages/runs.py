"""History: syncs and replays, what each did, and those that run now."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import TYPE_CHECKING

from datalake_assets.console.asked import Asked
from eventlake.catalog.sync_reports import ReportLine
from eventlake.rules import paths
from eventlake.rules.clock import now
from eventlake.rules.errors import LakeError
from eventlake.rules.text import headline, plural
from eventlake.runs.open_runs import committed
from eventlake.runs.report_history import RunReport, read_reports
from eventlake.settings.models import Source
from eventlake.status import RunInProgress, runs_in_progress

if TYPE_CHECKING:
    from datalake_assets.console.app import Console


PERIODS = ("7", "30", "90")
_RUNS = 50
_RECENT = 12


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run that has ended, in one line."""

    run_id: str
    source: str
    kind: str
    status: str
    started: datetime
    seconds: float
    rows_in: int
    rows: int
    duplicates: int
    rejected: int
    rescued: int
    new: str
    error: str

    @classmethod
    def of(cls, run: RunReport, slugs: dict[str, str]) -> "RunLine":
        line = run.source
        return cls(
            run_id=run.run_id,
            source=slugs.get(line.source_id, line.source_id),
            kind="replay" if run.is_replay else "sync",
            status=line.status,
            started=run.started,
            seconds=run.seconds,
            rows_in=line.rows_in,
            rows=line.row_count,
            duplicates=line.duplicates,
            rejected=line.rejected,
            rescued=line.rescued_cells,
            new=", ".join(
                plural(len(some), noun)
                for some, noun in ((run.new_tables, "table"), (run.new_columns, "column"))
                if some
            ),
            error=_error(line),
        )


def _error(line: ReportLine) -> str:
    if line.status == "finished":
        return ""
    return f"{line.error_code or line.status}: {headline(line.error).rstrip(':')}"


@dataclass(frozen=True, slots=True)
class RunningLine:
    """A run without a report yet."""

    run_id: str
    source: str
    kind: str
    alive: bool
    since: datetime
    days_done: int
    days: int
    rows: int  # published so far
    usual_seconds: float | None  # of the last runs of its kind
    dagster_run_id: str

    @property
    def seconds(self) -> float:
        return (now() - self.since).total_seconds()

    @classmethod
    def of(cls, asked: Asked, source: Source, run: RunInProgress) -> "RunningLine":
        facts, my = run.run.run, asked.my
        storage = my.lake.for_source(source).storage
        return cls(
            facts.run_id,
            source.slug,
            run.kind,
            run.alive,
            facts.start_time,
            run.days_done,
            run.days,
            committed(storage, facts, run.run.after_manifest).row_count,
            _usual(asked, source) if run.kind == "sync" else None,
            facts.dagster_run_id,
        )


def _usual(asked: Asked, source: Source) -> float | None:
    """The median duration of the last syncs that had rows."""
    my, last = asked.my, now().date()
    runs = my.past.runs(my.lake, source, last - timedelta(days=13), last)
    took = [r.seconds for r in runs if r.finished_well and not r.is_replay and r.source.rows_in]
    return median(took[:_RECENT]) if took else None


def slugs_of(asked: Asked) -> dict[str, str]:
    return {source.id: source.slug for source in asked.my.sources}


def started(run: RunReport) -> tuple[str, str]:
    return run.source.start_time, run.run_id


@dataclass(frozen=True, slots=True)
class History:
    running: tuple[RunningLine, ...]
    runs: tuple[RunLine, ...]
    sources: tuple[str, ...]
    source: str
    kind: str
    status: str
    days: int
    found: int
    page: int
    more: bool


def history(asked: Asked, console: "Console") -> History:
    source, slugs = asked.source(), slugs_of(asked)
    kind = asked.one_of("kind", ("sync", "replay"))
    status = asked.one_of("status", ("finished", "failed", "damaged"))
    days, page = int(asked.one_of("days", PERIODS, "30")), asked.number("page", 1, range(1, 10_000))
    last = now().date()
    first = last - timedelta(days=days - 1)
    chosen = [one for one in asked.my.sources if source in (None, one.slug)]
    my = asked.my
    found = [run for one in chosen for run in my.past.runs(my.lake, one, first, last)]
    found = [r for r in found if not kind or r.is_replay == (kind == "replay")]
    found = [r for r in found if not status or r.source.status == status]
    found.sort(key=started, reverse=True)
    shown = found[(page - 1) * _RUNS : page * _RUNS]
    return History(
        running=tuple(line for one in chosen for line in running(asked, one)),
        runs=tuple(RunLine.of(run, slugs) for run in shown),
        sources=tuple(slugs.values()),
        source=source or "",
        kind=kind,
        status=status,
        days=days,
        found=len(found),
        page=page,
        more=len(found) > page * _RUNS,
    )


def running(asked: Asked, source: Source) -> list[RunningLine]:
    my = asked.my
    lake = my.lake.for_source(source)
    runs = runs_in_progress(lake, source, my.past.state(lake, source))
    return [RunningLine.of(asked, source, run) for run in runs]


@dataclass(frozen=True, slots=True)
class RunTable:
    table: str
    is_new: bool
    rows: int
    duplicates: int
    rejected: int
    rescued: int
    new_columns: tuple[str, ...]
    partitions: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Run:
    """All that is known of a run; `line` is None while it runs."""

    run_id: str
    line: RunLine | None
    running: RunningLine | None
    error_code: str
    error: str
    notes: tuple[str, ...]
    raw_files: int
    suppressed: int
    skipped: int
    bytes: int
    replay_from: str
    replay_to: str
    dagster_run_id: str
    has_records: bool
    tables: tuple[RunTable, ...]


def run(asked: Asked, console: "Console") -> Run:
    run_id = asked.path["run"]
    for source in asked.my.sources:
        for line in running(asked, source):
            if run_id and run_id in (line.run_id, line.dagster_run_id):
                return _of_open(line)
    report = _report(asked, run_id)
    source_line, tables = report.source, report.tables
    with_log = False
    with suppress(LakeError):
        with_log = bool(asked.my.records(report.run_id).log.files)
    return Run(
        run_id=report.run_id,
        line=RunLine.of(report, slugs_of(asked)),
        running=None,
        error_code=source_line.error_code or "",
        error=source_line.error or "",
        notes=(
            *(f"Not loaded: {what}" for what in source_line.ignored or ()),
            *(source_line.to_replay or ()),
        ),
        raw_files=source_line.raw_files or 0,
        suppressed=source_line.suppressed,
        skipped=source_line.skipped,
        bytes=source_line.bytes_written,
        replay_from=source_line.replay_from or "",
        replay_to=source_line.replay_to or "",
        dagster_run_id=report.dagster_run_id,
        has_records=with_log,
        tables=tuple(_run_table(t) for t in sorted(tables, key=lambda t: -t.row_count)),
    )


def _of_open(line: RunningLine) -> Run:
    counts = 0, 0, 0, 0, "", ""
    return Run(line.run_id, None, line, "", "", (), *counts, line.dagster_run_id, False, ())


def _report(asked: Asked, run_id: str) -> RunReport:
    """A run id is the time when the run began, which says where its report is."""
    if run_id.isascii() and run_id.isdecimal() and len(run_id) == 19:
        day = f"{datetime.fromtimestamp(int(run_id) / 1e9, UTC):%Y-%m-%d}"
        for source in asked.my.sources:
            storage = asked.my.lake.for_source(source).storage
            for found in read_reports(storage, [paths.report(source.id, day, run_id)]):
                return found
    return asked.my.report(run_id)


def _run_table(line: ReportLine) -> RunTable:
    return RunTable(
        f"{line.database}.{line.table_name}",
        line.is_new,
        line.row_count,
        line.duplicates,
        line.rejected,
        line.rescued_cells,
        tuple(f"{column.name} {column.type}" for column in line.new_columns or ()),
        len(line.partitions or ()),
        line.bytes_written,
    )
