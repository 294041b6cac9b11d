"""Sync reports: the lines of `report.json` of a run."""

from datetime import datetime

import msgspec
from msgspec import UNSET

from eventlake.catalog.sync_reports import ReportLine
from eventlake.rules.counts import TableReport, UnitReport
from eventlake.settings.models import Settings, Source


class RunFacts(msgspec.Struct, frozen=True):
    """The facts of a run in every line of its report."""

    workspace_id: str
    source_id: str
    database: str
    run_id: str
    start_time: datetime
    s3_bucket: str
    emr_cluster_id: str = ""
    dagster_run_id: str = ""
    replay: bool = False
    replay_from: datetime | None = None
    replay_to: datetime | None = None

    @classmethod
    def of(
        cls,
        settings: Settings,
        source: Source,
        run_id: str,
        start_time: datetime,
        dagster_run_id: str = "",
        emr_cluster_id: str = "",
        window: tuple[datetime, datetime] | None = None,
    ) -> "RunFacts":
        """The facts of a run on a source; only a replay has a window."""
        return cls(
            workspace_id=settings.workspace_id,
            source_id=source.id,
            database=source.database,
            run_id=run_id,
            start_time=start_time,
            s3_bucket=settings.bucket,
            emr_cluster_id=emr_cluster_id,
            dagster_run_id=dagster_run_id,
            replay=window is not None,
            replay_from=window[0] if window else None,
            replay_to=window[1] if window else None,
        )

    @property
    def day(self) -> str:
        return f"{self.start_time:%Y-%m-%d}"


class Failure(msgspec.Struct, frozen=True):
    error_code: str
    error: str


def report_lines(
    run: RunFacts, done: UnitReport, finish: datetime, failure: Failure | None = None
) -> list[ReportLine]:
    """One line for the source and, unless the run failed, one for each table."""
    source = _source_line(run, done, finish, failure)
    if failure is not None:
        return [source]
    return [source, *(_table_line(source, table) for table in done.tables.values())]


def _source_line(
    run: RunFacts, done: UnitReport, finish: datetime, failure: Failure | None
) -> ReportLine:
    tables = done.tables.values()
    return ReportLine(
        type="source",
        workspace_id=run.workspace_id,
        source_id=run.source_id,
        run_id=run.run_id,
        start_time=_time(run.start_time),
        finish_time=_time(finish),
        duration_mins=int((finish - run.start_time).total_seconds() // 60),
        status="failed" if failure else "finished",
        error=failure.error if failure else UNSET,
        error_code=failure.error_code if failure else UNSET,
        database=run.database,
        replay=run.replay,
        replay_from=_time(run.replay_from) if run.replay_from else UNSET,
        replay_to=_time(run.replay_to) if run.replay_to else UNSET,
        emr_cluster_id=run.emr_cluster_id,
        s3_bucket=run.s3_bucket,
        day=run.day,
        dagster_run_id=run.dagster_run_id,
        partitions=_partitions(done) if failure and run.replay else UNSET,
        row_count=done.row_count,
        rows_in=done.rows_in,
        duplicates=done.duplicates,
        rejected=done.rejected,
        suppressed=done.suppressed,
        skipped=done.skipped,
        rescued_cells=sum(table.rescued_cells for table in tables),
        files_written=sum(table.files_written for table in tables),
        bytes_written=sum(table.bytes_written for table in tables),
        raw_files=done.raw_files,
        ignored_files=done.ignored_files,
        ignored=done.ignored or UNSET,
        rows_taken_along=done.rows_taken_along if run.replay else UNSET,
        to_replay=done.to_replay or UNSET,
    )


def _partitions(done: UnitReport) -> tuple[dict[str, str], ...]:
    """All partitions of all tables, each once; for failed replays."""
    found = {tuple(p.items()): p for t in done.tables.values() for p in t.partitions}
    return tuple(found[key] for key in sorted(found))


def _table_line(source: ReportLine, table: TableReport) -> ReportLine:
    return msgspec.structs.replace(
        source,
        type="event",
        table_name=table.name,
        partitions=table.partitions,
        new_columns=table.new_columns or UNSET,
        row_count=table.row_count,
        is_new=table.is_new,
        rows_in=table.rows_in,
        duplicates=table.duplicates,
        rejected=table.rejected,
        suppressed=table.suppressed,
        skipped=0,
        rescued_cells=table.rescued_cells,
        files_written=table.files_written,
        bytes_written=table.bytes_written,
        raw_files=UNSET,
        ignored_files=UNSET,
        ignored=UNSET,
        rows_taken_along=UNSET,
        to_replay=UNSET,
    )


def report_json(lines: list[ReportLine]) -> bytes:
    """One JSON object per line, as Hive's JSON SerDe reads it."""
    return msgspec.json.Encoder().encode_lines(lines)


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03}"
