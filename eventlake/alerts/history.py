"""Reads the runs since the last evaluation from the reports in the lake.

Records of suppressed people are never shown, even if they were suppressed after the run.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

from eventlake.alerts.rules import horizon, is_late
from eventlake.alerts.run_status import BadRecord, EndedRun, Outcome, RunStatus, StatusLookup
from eventlake.alerts.state import AlertState, Trouble
from eventlake.catalog.sync_reports import ReportLine
from eventlake.lake import Lake
from eventlake.rules import paths
from eventlake.rules.errors import LakeError
from eventlake.runs.failures import CANCELLED
from eventlake.runs.open_runs import open_runs
from eventlake.runs.report_history import RunReport, newest_reports, read_reports
from eventlake.settings.models import Source

if TYPE_CHECKING:
    from eventlake.rules.suppression import People


_CONTENT = 400  # characters of a record that are shown
_FILES = 20  # files of a table that are searched for a rescued value
_RECORDS = 1_000  # records of a log that are searched for one that may be shown


def first_rejected(lake: Lake, source: Source, run_id: str) -> BadRecord | None:
    """The first rejected record of a run, if its record log still exists."""
    from eventlake.load.record_log import BatchType
    from eventlake.records.logs import first, read, run_log

    try:
        people = _suppressed(lake, source)
        files = run_log(lake, [source], run_id).of({BatchType.REJECTED, BatchType.NULL})
        for records in first(read(lake.storage, files), _RECORDS):
            for record in records.to_pylist():
                payload = (record["record_payload"] or "").encode()
                if people is None or not people.are_named_in(payload):
                    return _rejected(source, record)
    except (LakeError, OSError):
        return None  # the message is sent without it
    return None


def _rejected(source: Source, record: dict[str, Any]) -> BadRecord:
    place, identifier = f"{record['raw_file']}:{record['raw_line']}", record["identifier"]
    return BadRecord(
        place,
        record["status_message"] or "rejected",
        "" if identifier == place else identifier,
        _content(source, record["record_payload"]),
    )


def first_rescued(lake: Lake, source: Source, report: RunReport) -> BadRecord | None:
    """A record of the table with the most rescued cells."""
    tables = [line for line in report.tables if line.rescued_cells]
    if not tables:
        return None
    worst = max(tables, key=lambda line: (line.rescued_cells, line.table_name))
    name, database = worst.table_name, worst.database
    try:
        people = _suppressed(lake, source)
        for row in _rescued_rows(lake, worst, report.run_id):
            person = {"userId": row["user_id"], "anonymousId": row["anonymous_id"]}
            if people is None or not people.has(person):
                return BadRecord(
                    f"{database}.{name}",
                    f"{worst.rescued_cells:,} cells of this table went to rescued_data",
                    row["message_id"] or "",
                    _content(source, row["rescued_data"]),
                )
    except (LakeError, OSError):
        return None
    return None


def _rescued_rows(lake: Lake, line: ReportLine, run_id: str) -> Iterator[dict[str, Any]]:
    """Rows with rescued values, first from the files that the run wrote."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    touched = {tuple(partition.values()) for partition in line.partitions or ()}
    found = lake.catalog.partitions(line.database, line.table_name)
    files = [
        file.path
        for partition in found
        if partition.values in touched
        for file in lake.storage.files(partition.location)
    ]
    columns = ["message_id", "user_id", "anonymous_id", "rescued_data"]
    for path in sorted(files, key=lambda path: run_id not in path)[:_FILES]:
        with lake.storage.open_input(path) as stream:
            parquet = pq.ParquetFile(stream)
            if "rescued_data" not in parquet.schema_arrow.names:
                continue
            rows = parquet.read(columns)
        yield from rows.filter(pc.is_valid(rows["rescued_data"]))[:_RECORDS].to_pylist()


def _content(source: Source, text: str | None) -> str:
    if not text or not source.alerts.show_record:
        return ""
    return text if len(text) <= _CONTENT else f"{text[:_CONTENT]} …"


def _suppressed(lake: Lake, source: Source) -> "People | None":
    """The people who are suppressed now."""
    from eventlake.state.suppression import Suppression

    found = Suppression.of(lake.storage, source)
    return found.people(lake.storage) if found else None


_AT_FIRST = 500  # reports that the first evaluation reads, at most
_PATIENCE = timedelta(minutes=10)
"""How long to wait for Dagster to record the end of a run that has reported a failure."""


def runs_since(
    lake: Lake, source: Source, state: AlertState, statuses: StatusLookup, now: datetime
) -> list[EndedRun]:
    """Ended runs; a failed run that has not ended in Dagster yet waits for the next evaluation."""
    late = is_late(state, now)
    reports = _at_first(lake, source) if late else _since(lake, source, state, now)
    found: list[EndedRun] = []
    for report in reports:
        status = (
            statuses(report.dagster_run_id) if report.dagster_run_id and report.failed else None
        )
        waits = status is not None and not status.over and now - report.finished < _PATIENCE
        if not waits:
            found.append(_with_records(lake, source, state, report, _attempt(report, status)))
    return found


def under_way(lake: Lake, source: Source) -> dict[str, str]:
    """The runs in progress, and the day on which each started."""
    return {one.run.run_id: one.run.day for one in open_runs(lake.storage, source.id)}


def _at_first(lake: Lake, source: Source) -> list[RunReport]:
    """The reports back to the last successful sync that loaded rows."""
    found: list[RunReport] = []
    for report in islice(newest_reports(lake, {source.id}), _AT_FIRST):
        found.append(report)
        if not (report.is_replay or report.failed) and report.source.rows_in:
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
    """Up to tomorrow: the clock of another machine may be ahead around midnight."""
    day, days = datetime.fromisoformat(first).date(), list[str]()
    while day <= now.date() + timedelta(days=1):
        days.append(f"{day}")
        day += timedelta(days=1)
    return days


def _attempt(report: RunReport, status: RunStatus | None) -> EndedRun:
    line, name = report.source, report.dagster_run_id or report.run_id
    return EndedRun(
        id=name,
        work=status.work if status else name,
        replay=report.is_replay,
        outcome=_outcome(report, status),
        started=report.started,
        ended=report.finished,
        run_id=report.run_id,
        dagster_run_id=report.dagster_run_id,
        error_code=line.error_code or "",
        error=line.error or "",
        rows_in=line.rows_in,
        rows=line.row_count,
        rejected=line.rejected,
        rescued_cells=line.rescued_cells,
    )


def _with_records(
    lake: Lake, source: Source, state: AlertState, report: RunReport, ended_run: EndedRun
) -> EndedRun:
    """Add examples of bad records, only if a message will show them."""
    alerts, rejected, rescued = source.alerts, None, None
    if ended_run.replay:
        return ended_run
    if _is_over(ended_run.rejected_percent, alerts.rejected_percent, state.rejected):
        rejected = first_rejected(lake, source, report.run_id)
    if _is_over(ended_run.rescued_percent, alerts.rescued_percent, state.rescued):
        rescued = first_rescued(lake, source, report)
    return replace(ended_run, first_rejected=rejected, first_rescued=rescued)


def _is_over(share: float, limit: float | None, trouble: Trouble) -> bool:
    return limit is not None and share > limit and trouble.since is None


def _outcome(report: RunReport, status: RunStatus | None) -> Outcome:
    """Dagster's status takes precedence: Dagster cancels runs that exceed their time limit, and a
    run may crash while it is being cancelled."""
    if not report.failed:
        return Outcome.FINISHED
    if status is not None and status.over:
        return Outcome.FAILED if status.failed and not status.will_retry else Outcome.NO_MATTER
    cancelled = report.source.error == CANCELLED.error
    return Outcome.NO_MATTER if cancelled else Outcome.FAILED
