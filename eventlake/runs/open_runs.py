"""Runs without a report yet. Every run gets a report, however it ends."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime

import msgspec

from eventlake.catalog import sync_records
from eventlake.catalog.base import Catalog, CatalogPartition
from eventlake.catalog.local import remove_damaged
from eventlake.catalog.sync_records import ensure_own_tables
from eventlake.catalog.sync_reports import DATABASE, NAME
from eventlake.rules import paths
from eventlake.rules.counts import UnitReport
from eventlake.rules.errors import DamagedFile, LakeError
from eventlake.runs.record_log import restore_records, show_records, write_metadata
from eventlake.runs.report_history import report_in
from eventlake.state.lease import Holder, myself, renewed
from eventlake.state.manifest import (
    Manifest,
    note_abandoned,
    read_manifest,
    read_pruned,
    whole_manifest,
)
from eventlake.state.replays import Replay
from eventlake.state.report import Failure, RunFacts, report_json, report_lines
from eventlake.storage import Storage
from eventlake.storage.documents import encode, read_notes


class OpenRun(msgspec.Struct, frozen=True):
    """A run, its process, and the last manifest when it began."""

    run: RunFacts
    after_manifest: int
    holder: Holder
    replay: Replay | None = None
    upkeep: bool = False  # it loads nothing, and has neither report nor record log


def open_runs(storage: Storage, source_id: str) -> list[OpenRun]:
    return [*filter(None, noted_runs(storage, source_id).values())]


def noted_runs(storage: Storage, source_id: str) -> dict[str, OpenRun | None]:
    """The same by id; None for a run whose file is damaged."""
    return read_notes(storage, paths.open_runs(source_id), OpenRun)


def forget_run(storage: Storage, source_id: str, run_id: str) -> None:
    """Close a run whose file is damaged: what it wrote but did not commit is removed."""
    note_abandoned(storage, source_id, run_id)
    storage.delete(paths.open_run(source_id, run_id))


def open_run_ids(storage: Storage, source_id: str) -> set[str]:
    files = storage.files(paths.open_runs(source_id))
    return {file.name.removesuffix(".json") for file in files}


@contextmanager
def opened_run(
    storage: Storage,
    run: RunFacts,
    after_manifest: int,
    replay: Replay | None = None,
    upkeep: bool = False,
) -> Iterator[None]:
    """Keep the file of an open run while the block runs."""
    path = paths.open_run(run.source_id, run.run_id)

    def content() -> bytes:
        return encode(OpenRun(run, after_manifest, myself(), replay, upkeep))

    storage.write(path, content())
    if not upkeep:
        write_metadata(storage, run, "running", {})
    with renewed(lambda: storage.write(path, content()), path):
        yield
    with suppress(LakeError, OSError):  # the run is over and has its report
        storage.delete(path)


class _Status(msgspec.Struct):
    status: str


def close_run(
    storage: Storage,
    catalog: Catalog,
    run: RunFacts,
    done: UnitReport,
    finish: datetime,
    failure: Failure | None = None,
) -> None:
    """End a run: write its report where SQL finds it, and remove its staging.

    Its commits have to be applied before, because they may need staged files.
    """
    lines = report_lines(run, done, finish, failure)
    storage.write(paths.report(run.source_id, run.day, run.run_id), report_json(lines))
    _wind_up(storage, catalog, run, lines[0].status)


def close_failed_run(
    storage: Storage,
    catalog: Catalog,
    run: RunFacts,
    after_manifest: int,
    finish: datetime,
    failure: Failure,
) -> bool:
    """Write a failed report with what the run committed, unless it has a report."""
    made = report_failure(storage, run, after_manifest, finish, failure)
    # Otherwise it ended after its report.
    _wind_up(storage, catalog, run, "failed" if made else _status(storage, run) or "failed")
    return made


def _status(storage: Storage, run: RunFacts) -> str | None:
    """The status in the report of a run; None if there is no readable report."""
    try:
        report = storage.read(paths.report(run.source_id, run.day, run.run_id)) or b""
        return msgspec.json.decode(report.partition(b"\n")[0], type=_Status).status
    except msgspec.MsgspecError:
        return None


def report_failure(
    storage: Storage, run: RunFacts, after_manifest: int, finish: datetime, failure: Failure
) -> bool:
    """Write only a failed report, unless the run has a report."""
    if _status(storage, run) is not None:
        return False
    write_failure(storage, run, committed(storage, run, after_manifest), finish, failure)
    return True


def write_failure(
    storage: Storage, run: RunFacts, done: UnitReport, finish: datetime, failure: Failure
) -> None:
    """Write a failed report in any case."""
    path = paths.report(run.source_id, run.day, run.run_id)
    storage.write(path, report_json(report_lines(run, done, finish, failure)))


def _wind_up(storage: Storage, catalog: Catalog, run: RunFacts, status: str) -> None:
    """Do everything that follows from a report; may be repeated."""
    try:
        _show_reports(catalog, [(run.source_id, run.day)])
    except DamagedFile:
        restore_reports(storage, catalog)
    show_records(storage, catalog, run)
    write_metadata(storage, run, status)
    if status == "failed":
        _leave_behind(storage, run)
    storage.delete_folder(paths.stage(run.source_id, run.run_id))
    storage.delete(paths.open_run(run.source_id, run.run_id))


def _show_reports(catalog: Catalog, days: Iterable[tuple[str, str]]) -> None:
    """Add partitions (sources and days) to the table of reports."""
    ensure_own_tables(catalog)
    partitions = [CatalogPartition(day, paths.reports_folder(*day), version=0) for day in days]
    catalog.put_partitions(DATABASE, NAME, partitions)


def restore_reports(storage: Storage, catalog: Catalog) -> None:
    """Restore the tables of reports and of records from their files."""
    for name in (NAME, sync_records.NAME):
        remove_damaged(storage, paths.catalog_table(DATABASE, name))
    files = storage.files(paths.reports_root())
    keys = (dict(k.split("=", 1) for k in f.path.split("/") if "=" in k) for f in files)
    _show_reports(catalog, sorted({(key["source"], key["day"]) for key in keys}))
    restore_records(storage, catalog)


@dataclass(frozen=True, slots=True)
class Healed:
    """Runs whose damaged reports were written again, and those of which nothing else is known."""

    rewritten: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.rewritten or self.removed)


def heal_reports(storage: Storage, source_id: str, last: int) -> Healed:
    """Write damaged reports again from the manifests up to a number; remove the others."""
    everywhere = (file.path for file in storage.files(paths.reports_root()))
    files = [path for path in everywhere if f"/source={source_id}/" in path]
    found = ((report_in(path, data), path) for path, data in _contents(storage, files))
    damaged = {report.run_id: path for report, path in found if report.damaged}
    made: dict[str, bytes] = {}
    for number in range(read_pruned(storage, source_id) + 1, last + 1) if damaged else ():
        manifest = whole_manifest(storage, source_id, number)
        if manifest is not None and manifest.run_id in damaged:
            made[manifest.run_id] = _report_of(manifest)
    for run_id, path in damaged.items():
        if run_id in made:
            storage.write(path, made[run_id])
        else:
            storage.delete(path)
    return Healed(tuple(sorted(made)), tuple(sorted(damaged.keys() - made.keys())))


def _contents(storage: Storage, files: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    contents = zip(files, storage.read_many(files), strict=True)
    return ((path, data) for path, data in contents if data is not None)


_UNKNOWN_END = Failure(
    "Segment.Internal",
    "The report of this run was damaged. It counts what the run committed; how the run ended is "
    "not known.",
)


def _report_of(manifest: Manifest) -> bytes:
    finish = manifest.finish_time or manifest.made or manifest.run.start_time
    failure = None if manifest.finish_time else _UNKNOWN_END
    return report_json(report_lines(manifest.run, manifest.report, finish, failure))


def close_upkeep(storage: Storage, run: RunFacts) -> None:
    """Close a crashed upkeep, which has no report: its commits stay. May be repeated."""
    _leave_behind(storage, run)
    storage.delete(paths.open_run(run.source_id, run.run_id))


def _leave_behind(storage: Storage, run: RunFacts) -> None:
    """Record the run as abandoned: its uncommitted files are removed after the grace period."""
    note_abandoned(storage, run.source_id, run.run_id)
    storage.discard_partial_writes("segment-data", run.run_id)


def committed(storage: Storage, run: RunFacts, after_manifest: int) -> UnitReport:
    """What a run committed before it ended; its last manifest has the counts of all units."""
    number, done = after_manifest + 1, UnitReport()
    while (manifest := read_manifest(storage, run.source_id, number)) is not None:
        if manifest.run_id == run.run_id:
            done = manifest.report
        number += 1
    return done
