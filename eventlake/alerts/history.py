"""What has happened to a source since somebody last looked, from the reports in its lake."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice

from eventlake.alerts.attempt import Attempt, Outcome
from eventlake.alerts.bad_records import first_rejected, first_rescued
from eventlake.alerts.fate import Fate, Fates
from eventlake.alerts.rule import horizon, is_late
from eventlake.alerts.state import AlertState, Trouble
from eventlake.lake import Lake
from eventlake.rules import paths
from eventlake.runs.failures import CANCELLED
from eventlake.runs.open_runs import OpenRun
from eventlake.runs.report_history import RunReport, newest_reports, read_reports
from eventlake.settings.models.models import Source
from eventlake.storage.documents import decode

_AT_FIRST = 500  # reports that the first look goes back, at most
_PATIENCE = timedelta(minutes=10)
"""After which a failed report counts, though Dagster does not know yet that the run is over."""


def attempts_since(
    lake: Lake, source: Source, state: AlertState, fates: Fates, now: datetime
) -> list[Attempt]:
    """Runs that have ended; one whose end Dagster has still to hear of waits for the next look."""
    late = is_late(state, now)
    reports = _at_first(lake, source) if late else _since(lake, source, state, now)
    found: list[Attempt] = []
    for report in reports:
        fate = fates(report.dagster_run_id) if report.dagster_run_id and report.failed else None
        waits = fate is not None and not fate.over and now - report.finished < _PATIENCE
        if not waits:
            found.append(_with_records(lake, source, state, report, _attempt(report, fate)))
    return found


def under_way(lake: Lake, source: Source) -> dict[str, str]:
    """The runs that have begun and are not over, and the day each began on."""
    storage = lake.storage
    files = [file.path for file in storage.files(paths.open_runs(source.id))]
    read = zip(files, storage.read_many(files), strict=True)
    runs = [decode(data, OpenRun, path).run for path, data in read if data is not None]
    return {run.run_id: run.day for run in runs}


def _at_first(lake: Lake, source: Source) -> list[RunReport]:
    """Back to the last sync that finished and brought rows."""
    found: list[RunReport] = []
    for report in islice(newest_reports(lake, {source.id}), _AT_FIRST):
        found.append(report)
        if not (report.is_replay or report.failed) and report.source.get("rows_in"):
            break
    return found


def _since(lake: Lake, source: Source, state: AlertState, now: datetime) -> Iterator[RunReport]:
    storage, first = lake.storage, horizon(state, now)
    wanted = [
        paths.report(source.id, day, run) for run, day in state.watched.items() if day < first
    ]
    for day in _days(first, now):
        for file in storage.files(paths.reports_folder(source.id, day)):
            run_id = file.path.split("/run_id=")[-1].split("/")[0]
            if run_id not in state.seen:
                wanted.append(file.path)
    return read_reports(storage, wanted)


def _days(first: str, now: datetime) -> list[str]:
    """Up to tomorrow: another machine's clock may be ahead around midnight."""
    day, days = datetime.fromisoformat(first).date(), list[str]()
    while day <= now.date() + timedelta(days=1):
        days.append(f"{day}")
        day += timedelta(days=1)
    return days


def _attempt(report: RunReport, fate: Fate | None) -> Attempt:
    line, name = report.source, report.dagster_run_id or report.run_id
    return Attempt(
        id=name,
        work=fate.work if fate else name,
        replay=report.is_replay,
        outcome=_outcome(report, fate),
        started=report.started,
        ended=report.finished,
        run_id=report.run_id,
        dagster_run_id=report.dagster_run_id,
        error_code=line.get("error_code") or "",
        error=line.get("error") or "",
        rows_in=line.get("rows_in", 0),
        rows=line.get("row_count", 0),
        rejected=line.get("rejected", 0),
        rescued_cells=line.get("rescued_cells", 0),
    )


def _with_records(
    lake: Lake, source: Source, state: AlertState, report: RunReport, attempt: Attempt
) -> Attempt:
    """The records are read only where a message will show them."""
    alerts, rejected, rescued = source.alerts, None, None
    if attempt.replay:
        return attempt
    if _is_over(attempt.rejected_percent, alerts.rejected_percent, state.rejected):
        rejected = first_rejected(lake, source, report.run_id)
    if _is_over(attempt.rescued_percent, alerts.rescued_percent, state.rescued):
        rescued = first_rescued(lake, source, report)
    return replace(attempt, first_rejected=rejected, first_rescued=rescued)


def _is_over(share: float, limit: float | None, trouble: Trouble) -> bool:
    return limit is not None and share > limit and trouble.since is None


def _outcome(report: RunReport, fate: Fate | None) -> Outcome:
    """What Dagster says counts: it stops runs that go on for too long, as if they were cancelled,
    and a run may die while it is being cancelled."""
    if not report.failed:
        return Outcome.FINISHED
    if fate is not None and fate.over:
        return Outcome.FAILED if fate.failed and not fate.will_retry else Outcome.NO_MATTER
    cancelled = report.source.get("error") == CANCELLED.error
    return Outcome.NO_MATTER if cancelled else Outcome.FAILED
