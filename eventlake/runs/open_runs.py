"""Runs without a report yet. Every run gets a report, however it ends."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime

import msgspec

from eventlake.catalog.base import Catalog, CatalogPartition
from eventlake.catalog.sync_reports import DATABASE, NAME, ensure_reports_table
from eventlake.rules import paths
from eventlake.rules.counts import UnitReport
from eventlake.rules.errors import LakeError
from eventlake.runs.record_log import write_metadata
from eventlake.state.lease import Holder, myself, renewed
from eventlake.state.manifest import note_abandoned, read_manifest
from eventlake.state.replays import Replay
from eventlake.state.report import Failure, RunFacts, report_json, report_lines
from eventlake.storage import Storage
from eventlake.storage.documents import encode, read_all


class OpenRun(msgspec.Struct, frozen=True):
    """A run, its process, and the last manifest when it began."""

    run: RunFacts
    after_manifest: int
    holder: Holder
    replay: Replay | None = None
    upkeep: bool = False  # it loads nothing and has neither report nor record log


def open_runs(storage: Storage, source_id: str) -> list[OpenRun]:
    return read_all(storage, paths.open_runs(source_id), OpenRun)


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
        write_metadata(storage, run, "running")
    with renewed(lambda: storage.write(path, content()), path):
        yield
    with suppress(LakeError, OSError):  # the run is over and has its report
        storage.delete(path)


def close_run(
    storage: Storage,
    catalog: Catalog,
    run: RunFacts,
    done: UnitReport,
    finish: datetime,
    failure: Failure | None = None,
) -> None:
    """Write the run's report where SQL finds it; the run is over, and its staging goes.

    Everything that the run committed has to be applied before: it may need what is staged.
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
    """A failed report, unless the run has a report; what it did is what it committed."""
    if report_failure(storage, run, after_manifest, finish, failure):
        _wind_up(storage, catalog, run, "failed")
        return True
    # It ended between its report and the rest.
    report = storage.read(paths.report(run.source_id, run.day, run.run_id)) or b""
    _wind_up(storage, catalog, run, msgspec.json.decode(report.splitlines()[0])["status"])
    return False


def report_failure(
    storage: Storage, run: RunFacts, after_manifest: int, finish: datetime, failure: Failure
) -> bool:
    """A failed report and nothing else, unless the run has a report."""
    if storage.read(paths.report(run.source_id, run.day, run.run_id)) is not None:
        return False
    write_failure(storage, run, committed(storage, run, after_manifest), finish, failure)
    return True


def write_failure(
    storage: Storage, run: RunFacts, done: UnitReport, finish: datetime, failure: Failure
) -> None:
    """A failed report, whatever there was."""
    path = paths.report(run.source_id, run.day, run.run_id)
    storage.write(path, report_json(report_lines(run, done, finish, failure)))


def _wind_up(storage: Storage, catalog: Catalog, run: RunFacts, status: str) -> None:
    """Everything that follows from a report; may be repeated."""
    ensure_reports_table(catalog)
    folder = paths.reports_folder(run.source_id, run.day)
    partition = CatalogPartition((run.source_id, run.day), folder, version=0)
    catalog.put_partitions(DATABASE, NAME, [partition])
    write_metadata(storage, run, status)
    if status == "failed":
        _leave_behind(storage, run)
    storage.delete_folder(paths.stage(run.source_id, run.run_id))
    storage.delete(paths.open_run(run.source_id, run.run_id))


def close_upkeep(storage: Storage, run: RunFacts) -> None:
    """A run without a report that broke off is over: what it committed stays. May be repeated."""
    _leave_behind(storage, run)
    storage.delete(paths.open_run(run.source_id, run.run_id))


def _leave_behind(storage: Storage, run: RunFacts) -> None:
    """What it wrote but did not commit is removed after the grace period."""
    note_abandoned(storage, run)
    storage.discard_partial_writes("segment-data", run.run_id)


def committed(storage: Storage, run: RunFacts, after_manifest: int) -> UnitReport:
    """What a run had committed before it ended: its last manifest counts all its units."""
    number, done = after_manifest + 1, UnitReport()
    while (manifest := read_manifest(storage, run.source_id, number)) is not None:
        if manifest.run_id == run.run_id:
            done = manifest.report
        number += 1
    return done
