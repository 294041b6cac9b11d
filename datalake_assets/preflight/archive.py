"""The raw archive of a source and what became of it: why there is data, or none."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from datalake_assets.preflight.finding import Finding, Remark, finding_of
from eventlake.lake import Lake
from eventlake.runs.plan import list_archive, plan_sync
from eventlake.runs.report_history import newest_reports
from eventlake.settings.models import Source
from eventlake.state.source_state import read_state, refuse_changed_layout

if TYPE_CHECKING:
    import dagster as dg


@dataclass(frozen=True)
class Schedules:
    """The schedules of an instance of Dagster, which is asked only when it matters."""

    instance: "Callable[[], dg.DagsterInstance]"

    def is_on(self, source: Source) -> bool:
        from datalake_assets.assets.keys import sync_job_name

        running = self._running
        return running is None or f"{sync_job_name(source)}_schedule" in running

    @cached_property
    def _running(self) -> frozenset[str] | None:
        """Those that were switched on, by hand or by how the UI was started; None: not known."""
        instance = self.instance()
        if instance.schedule_storage is None:
            return None
        states = instance.all_instigator_state()
        return frozenset(state.instigator_name for state in states if state.is_running)


def archive_findings(
    lake: Lake, source: Source, schedules: Schedules | None = None
) -> Iterator[Finding]:
    """The archive and the tables; of syncs and schedules only what keeps data away."""
    archive = finding_of(f"archive of {source.slug}", lambda: _archive(lake, source))
    tables = finding_of(f"tables of {source.slug}", lambda: _tables(lake, source))
    yield archive
    yield tables
    if archive.error or tables.error:
        return
    if not source.is_scheduled:
        off = "`schedule` is off" if source.enabled else "the source is not enabled"
        on = "a cron expression" if source.enabled else "`enabled: true`"
        yield Finding(
            f"schedule of {source.slug}",
            f"no syncs by schedule, since {off}: set {on} to have "
            f"them, or run `datalake sync --source {source.slug}`",
            warning=True,
        )
    elif schedules is not None and _waiting(lake, source) and not schedules.is_on(source):
        yield Finding(
            f"schedule of {source.slug}",
            "off, and files wait: switch it on in the UI (Automation), or start the UI with "
            "`datalake dev --schedules`",
            warning=True,
        )
    yield from _last_sync(lake, source)


def _archive(lake: Lake, source: Source) -> str:
    folders = list_archive(lake.storage, source).folders
    files = [file for stored in folders.values() for file in stored]
    place = lake.storage.full(source.raw)
    if not files:
        raise Remark(f"{place} holds no raw files yet")
    if source.start is not None and max(folders) < source.start:
        raise Remark(
            f"{place} holds {len(files):,} files, all in day folders up to {max(folders)}, which "
            f"syncs ignore: `start` is {source.start}. Set an earlier `start` to load them"
        )
    total = sum(file.size for file in files) / 1e6
    waiting = _waiting(lake, source)
    told = f"; {waiting:,} wait for a sync" if waiting else ""
    return f"{len(files):,} files, {total:,.1f} MB, days {min(folders)} to {max(folders)}{told}"


def _waiting(lake: Lake, source: Source) -> int:
    """Files that the next sync would load."""
    state = read_state(lake.storage, source.id)
    return sum(len(unit.files) for unit in plan_sync(lake.storage, source, state).units)


def _tables(lake: Lake, source: Source) -> str:
    state = read_state(lake.storage, source.id)
    refuse_changed_layout(source, state)
    known = len(state.tables_of(source))
    return f"{known} in database {source.database}" if known else "none yet"


def _last_sync(lake: Lake, source: Source) -> Iterator[Finding]:
    def check() -> str:
        runs = newest_reports(lake, {source.id})
        last = next((run for run in runs if not run.is_replay), None)
        if last is None or not last.failed:
            return ""
        raise Remark(
            f"failed at {last.started:%Y-%m-%d %H:%M} UTC with {last.source.error_code}: "
            f"{last.source.error}"
        )

    found = finding_of(f"last sync of {source.slug}", check)
    if found.message:
        yield found
