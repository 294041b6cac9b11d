"""Reads the runs since the last evaluation from the reports in the lake.

Records of suppressed people are never shown, even if they were suppressed after the run.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from eventlake.alerts.rules import Observed, horizon, is_late, state_after
from eventlake.alerts.run_status import (
    CheckRun,
    EndedRun,
    Outcome,
    RunStatus,
    StatusLookup,
    unknown,
)
from eventlake.alerts.state import AlertState, Trouble, read_alerts
from eventlake.alerts.wording import RECORD, MessageWriter
from eventlake.catalog.sync_reports import ReportLine
from eventlake.lake import Lake
from eventlake.rules import paths
from eventlake.rules.errors import LakeError
from eventlake.rules.names import MESSAGE_ID, RESCUED_DATA
from eventlake.runs.failures import CANCELLED, REFUSED
from eventlake.runs.open_runs import open_runs
from eventlake.runs.report_history import RunReport, newest_reports, read_reports
from eventlake.settings.models import Source

_CONTENT = 400  # characters of a record that are shown
_FILES = 20  # files of a table that are searched for a rescued value
_RECORDS = 1_000  # records of a log that are searched for one that may be shown


def first_rejected(lake: Lake, source: Source, run_id: str) -> dict[str, str]:
    """The first rejected record of a run, if its record log still exists."""
    from eventlake.load.record_log import BatchType
    from eventlake.records.logs import first, read, run_log
    from eventlake.state.suppression import suppressed_people

    try:
        people = suppressed_people(lake.storage, source)
        files = run_log(lake, [source], run_id).of({BatchType.REJECTED, BatchType.NULL})
        for records in first(read(lake.storage, files), _RECORDS):
            for record in records.to_pylist():
                payload = (record["record_payload"] or "").encode()
                if people is None or not people.are_named_in(payload):
                    return _rejected(source, record)
    except (LakeError, OSError):
        return {}  # the message is sent without it
    return {}


def _rejected(source: Source, record: dict[str, Any]) -> dict[str, str]:
    place, identifier = f"{record['raw_file']}:{record['raw_line']}", record["identifier"]
    return _shown(
        place,
        record["status_message"] or "rejected",
        "" if identifier == place else identifier,
        _content(source, record["record_payload"]),
    )


def first_rescued(lake: Lake, source: Source, report: RunReport) -> dict[str, str]:
    """A record of the table with the most rescued cells."""
    tables = [line for line in report.tables if line.rescued_cells]
    if not tables:
        return {}
    worst = max(tables, key=lambda line: (line.rescued_cells, line.table_name))
    name, database = worst.table_name, worst.database
    from eventlake.state.suppression import suppressed_people

    try:
        people = suppressed_people(lake.storage, source)
        for message_id, user, anonymous, rescued in _rescued_rows(
            lake, source, worst, report.run_id
        ):
            if people is None or not people.has({"userId": user, "anonymousId": anonymous}):
                return _shown(
                    f"{database}.{name}",
                    f"{worst.rescued_cells:,} cells of this table went to rescued_data",
                    message_id or "",
                    _content(source, rescued),
                )
    except (LakeError, OSError):
        return {}
    return {}


def _rescued_rows(
    lake: Lake, source: Source, line: ReportLine, run_id: str
) -> Iterator[tuple[Any, ...]]:
    """Ids and rescued values of rows that have some, first from the files that the run wrote."""
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
    columns = [MESSAGE_ID.name(source.naming), "user_id", "anonymous_id", RESCUED_DATA]
    for path in sorted(files, key=lambda path: run_id not in path)[:_FILES]:
        with lake.storage.open_input(path) as stream:
            parquet = pq.ParquetFile(stream)
            if not set(columns) <= set(parquet.schema_arrow.names):
                continue  # no rescued values, or written with another naming
            rows = parquet.read(columns)
        for row in rows.filter(pc.is_valid(rows[RESCUED_DATA]))[:_RECORDS].to_pylist():
            yield tuple(row[column] for column in columns)


def _shown(*record: str) -> dict[str, str]:
    """Its place, reason, identifier and content, as facts of a message."""
    return {f"record_{name}": text for name, text in zip(RECORD, record, strict=True)}


def _content(source: Source, text: str | None) -> str:
    if not text or not source.alerts.show_record:
        return ""
    return text if len(text) <= _CONTENT else f"{text[:_CONTENT]} …"


_AT_FIRST = 500  # reports that the first evaluation reads, at most
_PATIENCE = timedelta(minutes=10)
"""How long to wait for Dagster to record the end of a run that has reported a failure."""


def observe(
    lake: Lake,
    source: Source,
    state: AlertState,
    now: datetime,
    statuses: StatusLookup = unknown,
    failures: Sequence[EndedRun] = (),
    check_runs: Sequence[CheckRun] = (),
) -> Observed:
    """What is new since a state; `failures` are the failed runs in Dagster."""
    # Read before the reports, so that a run that ends meanwhile is in one of the two.
    running = {one.run.run_id: one.run.day for one in open_runs(lake.storage, source.id)}
    reported = list(_runs_since(lake, source, state, now, statuses))
    known = {one.id for one in reported}
    unreported = [one for one in failures if one.id not in known]
    return Observed([*reported, *unreported], check_runs, running)


def current_troubles(lake: Lake, source: Source, now: datetime) -> dict[str, Trouble]:
    """The open problems by kind, the oldest first, as an evaluation would find them now."""
    lake = lake.for_source(source)
    before = read_alerts(lake.storage, source.id)
    observed = observe(lake, source, before, now)
    state = state_after(before, observed, source.alerts, MessageWriter(source, now))
    return dict(sorted(state.troubles.items(), key=lambda item: item[1].since))


def _runs_since(
    lake: Lake, source: Source, state: AlertState, now: datetime, statuses: StatusLookup
) -> Iterator[EndedRun]:
    """Ended runs; a failed run that has not ended in Dagster yet waits for the next evaluation."""
    late = is_late(state, now)
    for report in _at_first(lake, source) if late else _since(lake, source, state, now):
        in_dagster = report.dagster_run_id if report.failed else ""
        status = statuses(in_dagster) if in_dagster else None
        waits = status is not None and not status.over and now - report.finished < _PATIENCE
        if not waits:
            yield _with_records(lake, source, state, report, _ended_run(report, status))


def _at_first(lake: Lake, source: Source) -> list[RunReport]:
    """The reports back to the last successful sync, with rows if their shares are watched."""
    alerts, found = source.alerts, list[RunReport]()
    limits = (alerts.no_data_hours, alerts.rejected_percent, alerts.rescued_percent)
    with_rows = any(limit is not None for limit in limits)
    for report in islice(newest_reports(lake, {source.id}), _AT_FIRST):
        found.append(report)
        if (
            report.finished_well
            and not report.is_replay
            and (report.source.rows_in or not with_rows)
        ):
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
            if run_id not in state.counted:
                wanted.append(file.path)
    return read_reports(storage, wanted)


def _days(first: str, now: datetime) -> list[str]:
    """Up to tomorrow: the clock of another machine may be ahead around midnight."""
    day, days = datetime.fromisoformat(first).date(), list[str]()
    while day <= now.date() + timedelta(days=1):
        days.append(f"{day}")
        day += timedelta(days=1)
    return days


def _ended_run(report: RunReport, status: RunStatus | None) -> EndedRun:
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
    records = dict[str, dict[str, str]]()
    for kind in ("rejected", "rescued"):
        limit, trouble = getattr(source.alerts, f"{kind}_percent"), state.troubles.get(kind)
        is_bad = limit is not None and ended_run.percent(kind) > limit and not ended_run.replay
        if is_bad and not (trouble and trouble.points):
            records[kind] = (
                first_rejected(lake, source, report.run_id)
                if kind == "rejected"
                else first_rescued(lake, source, report)
            )
    return replace(ended_run, records=records)


def _outcome(report: RunReport, status: RunStatus | None) -> Outcome:
    """Refused replays are not reported: their users see the error. Otherwise, the status in Dagster
    takes precedence: Dagster cancels runs that exceed their time limit, and a run may crash while
    it is being cancelled."""
    if report.damaged:
        return Outcome.NO_MATTER
    if not report.failed:
        return Outcome.FINISHED
    if (report.source.error or "").startswith(REFUSED):
        return Outcome.NO_MATTER
    if status is not None and status.over:
        return Outcome.FAILED if status.failed and not status.will_retry else Outcome.NO_MATTER
    cancelled = report.source.error == CANCELLED.error
    return Outcome.NO_MATTER if cancelled else Outcome.FAILED
