"""The sync reports of a lake, newest first, read from their files one day at a time."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from eventlake.catalog.sync_reports import DATABASE, NAME, ReportLine
from eventlake.lake import Lake
from eventlake.rules.errors import UsageError
from eventlake.storage import Storage

_LINES = msgspec.json.Decoder(ReportLine)


@dataclass(frozen=True, slots=True)
class RunReport:
    """The report of one run: the line of its source, and one for each table."""

    source: ReportLine
    tables: tuple[ReportLine, ...] = ()

    @property
    def run_id(self) -> str:
        return self.source.run_id

    @property
    def dagster_run_id(self) -> str:
        return self.source.dagster_run_id

    @property
    def failed(self) -> bool:
        return self.source.status == "failed"

    @property
    def finished_well(self) -> bool:
        return self.source.status == "finished"

    @property
    def damaged(self) -> bool:
        """Whether the report cannot be read; its error says why."""
        return self.source.status == "damaged"

    @property
    def is_replay(self) -> bool:
        return self.source.replay

    @property
    def started(self) -> datetime:
        return _moment(self.source.start_time)

    @property
    def finished(self) -> datetime:
        return _moment(self.source.finish_time)

    @property
    def seconds(self) -> float:
        return (self.finished - self.started).total_seconds()

    @property
    def new_tables(self) -> list[str]:
        return [line.table_name for line in self.tables if line.is_new]

    @property
    def new_columns(self) -> list[str]:
        """Columns that tables gained which were there before, as `table.column`."""
        return [
            f"{line.table_name}.{column.name}"
            for line in self.tables
            if not line.is_new
            for column in line.new_columns or ()
        ]


def newest_reports(lake: Lake, source_ids: Collection[str] | None = None) -> Iterator[RunReport]:
    """All reports, or those of some sources; no more is read than is taken."""
    if lake.catalog.table(DATABASE, NAME) is None:
        return
    folders: dict[str, list[str]] = {}
    for partition in lake.catalog.partitions(DATABASE, NAME):
        source_id, day = partition.values
        if source_ids is None or source_id in source_ids:
            folders.setdefault(day, []).append(partition.location)
    for day in sorted(folders, reverse=True):
        files = [file.path for folder in folders[day] for file in lake.storage.files(folder)]
        yield from sorted(
            read_reports(lake.storage, files),
            key=lambda run: (run.source.start_time, run.run_id),
            reverse=True,
        )


_BEGINNING = 4  # characters of an id, at least


def report_of(reports: Iterable[RunReport], run: str) -> RunReport | None:
    """The report of a run, by its id or Dagster's, the beginning of one, or `latest`."""
    begins: list[RunReport] = []
    for report in reports:
        ids = (report.run_id, report.dagster_run_id)
        if run and (run in ids or run == "latest"):
            return report
        if len(run) >= _BEGINNING and any(id.startswith(run) for id in ids):
            begins.append(report)
    if len(begins) > 1:
        some = ", ".join(report.run_id for report in begins[:5])
        raise UsageError(
            f"{len(begins)} runs have ids that begin with {run!r}: {some}"
            f"{', …' if len(begins) > 5 else ''}. Give more of the id."
        )
    return begins[0] if begins else None


def read_reports(storage: Storage, files: Sequence[str]) -> Iterator[RunReport]:
    """The reports in some files; those that are not there are left out."""
    contents = zip(files, storage.read_many(files), strict=True)
    return (report_in(path, data) for path, data in contents if data is not None)


def report_in(path: str, data: bytes) -> RunReport:
    """The report of a file; one that cannot be read says so."""
    try:
        lines = _LINES.decode_lines(data)
        sources = [line for line in lines if line.type == "source"]
        report = RunReport(sources[0], tuple(line for line in lines if line.type != "source"))
        report.seconds  # noqa: B018 (raises where its times cannot be read)
    except (msgspec.MsgspecError, LookupError, ValueError) as error:
        why = (
            f"{path} is not a sync report ({type(error).__name__}: {error}). It was damaged or "
            "edited: `datalake recover` writes it again."
        )
        return RunReport(_stand_in(path, why))
    return report


def _stand_in(path: str, why: str) -> ReportLine:
    """A line for a run whose report cannot be read."""
    known = dict(part.split("=", 1) for part in path.split("/") if "=" in part)
    midnight = f"{known['day']} 00:00:00.000"
    return ReportLine(
        type="source",
        source_id=known["source"],
        run_id=known["run_id"],
        start_time=midnight,
        finish_time=midnight,
        status="damaged",
        error=why,
        day=known["day"],
    )


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)
