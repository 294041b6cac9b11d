"""Which runs have a record log, and which files it is made of."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import pyarrow.parquet as pq

from eventlake.lake import Lake
from eventlake.load.record_log import BatchType
from eventlake.rules import paths
from eventlake.rules.errors import UsageError
from eventlake.runs.record_log import LogMetadata, read_metadata
from eventlake.runs.report_history import RunReport, newest_reports
from eventlake.settings.models.models import Source
from eventlake.storage import Storage

_SHOWN = 5  # runs named in a message


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file of records, all of which have the same status."""

    path: str
    batch_type: BatchType
    number: int

    def rows(self, storage: Storage) -> int:
        with storage.open_input(self.path) as stream:
            rows: int = pq.read_metadata(stream).num_rows
            return rows


@dataclass(frozen=True, slots=True)
class RunLog:
    """The record log of one run; files in order of batch type and number."""

    source: Source
    run_id: str
    run: LogMetadata
    files: tuple[LogFile, ...]

    def of(self, batch_types: Collection[BatchType]) -> list[LogFile]:
        return [file for file in self.files if file.batch_type in batch_types]


def run_logs(lake: Lake, source: Source) -> list[RunLog]:
    """The logs of a source, the newest run first; also those that have no records (yet)."""
    lake = lake.for_source(source)
    root = paths.tracked_runs(lake.settings.workspace_id, source.id)
    by_run: dict[str, list[str]] = {}
    for file in lake.storage.files(root):
        folder, _, name = file.path.rpartition("/")
        by_run.setdefault(folder, []).append(name)
    found = lake.storage.each(lambda run: _log(lake, source, *run), list(by_run.items()))
    logs = [log for log in found if log is not None]
    return sorted(logs, key=lambda log: (log.run.started_at, log.run_id), reverse=True)


def run_log(lake: Lake, sources: Iterable[Source], run: str) -> RunLog:
    """The log of the run with this id, or with this id of Dagster's."""
    sources = list(sources)
    if (found := _by_folder(lake, sources, run)) is not None:
        return found
    reports = newest_reports(lake, {source.id for source in sources})
    report = next((r for r in reports if run and run in (r.run_id, r.dagster_run_id)), None)
    if report is None:
        raise _unknown(lake, sources, run)
    if (found := _by_folder(lake, sources, report.run_id)) is not None:
        return found
    raise _expired(sources, report)


def newest_log(lake: Lake, source: Source) -> RunLog:
    """The log of the newest run that has records."""
    logs = run_logs(lake, source)
    found = next((log for log in logs if log.files), None)
    if found is None:
        raise UsageError(
            f"Source {source.slug!r} has no record log: "
            + (
                f"its last {len(logs)} runs had no records to log."
                if logs
                else "`datalake sync` makes one, and logs are kept "
                f"{source.retention.record_log_days} days."
            )
        )
    return found


def _by_folder(lake: Lake, sources: Sequence[Source], run_id: str) -> RunLog | None:
    if not run_id or "/" in run_id or run_id.startswith("."):
        return None
    for source in sources:
        folder = paths.tracking(lake.settings.workspace_id, source.id, run_id)
        own = lake.for_source(source)
        names = [file.name for file in own.storage.files(folder, recursive=False)]
        if names and (log := _log(own, source, folder, names)):
            return log
    return None


def _log(lake: Lake, source: Source, folder: str, names: Iterable[str]) -> RunLog | None:
    metadata = read_metadata(lake.storage, folder)
    if metadata is None:
        return None  # retention removes a folder file by file
    order = list(BatchType)
    files = [file for name in names if (file := _log_file(folder, name))]
    files.sort(key=lambda file: (order.index(file.batch_type), file.number))
    return RunLog(source, folder.rpartition("/")[2], metadata, tuple(files))


def _log_file(folder: str, name: str) -> LogFile | None:
    """`records_loaded.0.parquet`; anything else is not ours to read."""
    batch_type, _, rest = name.partition(".")
    number, _, ending = rest.partition(".")
    if batch_type not in set(BatchType) or not number.isdecimal() or ending != "parquet":
        return None
    return LogFile(f"{folder}/{name}", BatchType(batch_type), int(number))


def _unknown(lake: Lake, sources: Sequence[Source], run: str) -> UsageError:
    logs = [log for source in sources for log in run_logs(lake, source)]
    logs.sort(key=lambda log: log.run.started_at, reverse=True)
    newest = ", ".join(f"{log.run_id} ({log.source.slug})" for log in logs[:_SHOWN])
    of = " or ".join(source.slug for source in sources)
    return UsageError(
        f"No run of {of} has the id {run!r}. "
        + (
            f"The newest of {len(logs)} with a record log: {newest}. `datalake records` lists "
            "them all."
            if logs
            else "No run has a record log yet: `datalake sync` makes one."
        )
    )


def _expired(sources: Sequence[Source], report: RunReport) -> UsageError:
    source = next(s for s in sources if s.id == report.source["source_id"])
    return UsageError(
        f"Run {report.run_id} of {source.slug} began {report.started:%Y-%m-%d %H:%M} UTC; its "
        f"record log is no longer there. Logs are kept {source.retention.record_log_days} days "
        "(`retention.record_log_days`). `datalake reports --run "
        f"{report.run_id}` still tells its numbers."
    )
