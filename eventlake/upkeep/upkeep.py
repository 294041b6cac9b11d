"""Upkeep of a source: compacts small files and removes what is not needed."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import reduce

import msgspec

from eventlake.lake import Lake
from eventlake.rules import paths
from eventlake.rules.clock import new_run_id
from eventlake.rules.errors import LakeError
from eventlake.rules.text import plural
from eventlake.runs.clean_up import Removed, clean_up, counted, due_places
from eventlake.runs.context import Dataflow, Listener, RunContext, Silent, now
from eventlake.runs.run import Run
from eventlake.settings.models import Settings, Source
from eventlake.state.manifest import RunKind
from eventlake.state.report import RunFacts
from eventlake.state.source_state import read_state
from eventlake.storage import Storage
from eventlake.storage.documents import decode_note, encode
from eventlake.upkeep.candidates import Candidate
from eventlake.upkeep.compaction import Compacted, away, bring_home, compact, to_compact
from eventlake.upkeep.removal import (
    drop_index_days,
    expired_logs,
    find_orphans,
    prune_manifests,
    remove_expired_logs,
    remove_orphans,
    spare_days,
    spare_manifests,
)


class Amount(msgspec.Struct, frozen=True):
    files: int = 0
    bytes: int = 0


def areas(settings: Settings, source: Source) -> dict[str, str]:
    """The folders of a source, by their name in reports."""
    return {
        "data": f"segment-data/data/{source.id}",
        "record log": paths.tracked_runs(settings.workspace_id, source.id),
        "id index": paths.id_indexes(source.id),
        "manifests": paths.manifests(source.id),
        "staging": paths.staged_runs(source.id),
    }


def measured(storage: Storage, settings: Settings, source: Source) -> dict[str, Amount]:
    found = areas(settings, source)
    amounts = (counted(files) for files in storage.each(storage.files, list(found.values())))
    return {
        area: Amount(amount.files, amount.bytes)
        for area, amount in zip(found, amounts, strict=True)
    }


KEPT = 100
"""Reports per source that are kept."""


class UpkeepReport(msgspec.Struct, frozen=True):
    """Files and bytes by area before and after, and what was removed."""

    source_id: str
    run_id: str
    dagster_run_id: str
    start_time: datetime
    finish_time: datetime
    before: dict[str, Amount]
    after: dict[str, Amount]
    removed: dict[str, Amount]  # by reason
    compacted: Compacted
    came_home: Amount = Amount()  # files and bytes that moved to their documented folders
    index_days: tuple[str, ...] = ()  # removed from the id index
    orphans: Amount = Amount()  # within the grace period
    warnings: tuple[str, ...] = ()
    dry_run: bool = False  # a plan: nothing was done

    @property
    def seconds(self) -> float:
        return (self.finish_time - self.start_time).total_seconds()


def write_report(storage: Storage, report: UpkeepReport) -> None:
    """Write a report and remove the oldest ones."""
    storage.write(paths.upkeep_report(report.source_id, report.run_id), encode(report))
    known = storage.files(paths.upkeep_reports(report.source_id))
    for file in sorted(known, key=lambda file: file.path)[:-KEPT]:
        storage.delete(file.path)


def newest_upkeeps(storage: Storage, source_id: str) -> Iterator[UpkeepReport]:
    files = sorted(storage.files(paths.upkeep_reports(source_id)), key=lambda f: f.path)
    for file in reversed(files):
        if report := decode_note(storage.read(file.path), UpkeepReport, file.path):
            yield report


_AS_LONG_AS_IT_TAKES = float("inf")


@dataclass
class _Recorder(Silent):
    """Forwards messages and records warnings."""

    listener: Listener
    warnings: list[str] = field(default_factory=list)

    def log(self, message: str) -> None:
        self.listener.log(message)

    def warn(self, message: str) -> None:
        self.warnings.append(message)
        self.listener.warn(message)


class UpkeepFailed(LakeError):
    """Parts of an upkeep failed; the report covers these and the completed ones."""

    def __init__(self, report: UpkeepReport, problems: Sequence[str]) -> None:
        self.report = report
        super().__init__("\n".join(problems))


def upkeep(context: RunContext, at: datetime) -> UpkeepReport:
    """Do all upkeep that is due; if one part fails, the others are still done."""
    recorder = _Recorder(context.listener)
    upkeep = _Upkeep(Run(replace(context, listener=recorder)), at, recorder)
    report = upkeep.report()
    if upkeep.problems:
        raise UpkeepFailed(report, upkeep.problems)
    return report


@dataclass
class _Upkeep:
    run: Run
    at: datetime
    recorder: _Recorder
    problems: list[str] = field(default_factory=list)
    compacted: Compacted = field(default_factory=Compacted)
    came_home: Amount = field(default_factory=Amount)
    index_days: tuple[str, ...] = ()
    orphans: Removed = field(default_factory=Removed)
    removed: dict[str, Removed] = field(default_factory=dict)

    def report(self) -> UpkeepReport:
        context = self.run.context
        storage, settings, source = context.storage, context.settings, context.source
        began = now()
        with self.run.unreported():
            before = measured(storage, settings, source)
            for what, do in self._parts():
                with self._recorded(what):
                    do()
            self._tidy()
            after = measured(storage, settings, source)
        report = UpkeepReport(
            source_id=source.id,
            run_id=context.run_id,
            dagster_run_id=context.facts.dagster_run_id,
            start_time=began,
            finish_time=now(),
            before=before,
            after=after,
            removed={reason: _amount(removed) for reason, removed in self.removed.items()},
            compacted=self.compacted,
            came_home=self.came_home,
            index_days=self.index_days,
            orphans=_amount(self.orphans),
            warnings=(*self.recorder.warnings, *self.problems),
        )
        write_report(storage, report)
        return report

    def _parts(self) -> Iterator[tuple[str, Callable[[], None]]]:
        yield "Moving partitions to their documented folders", self._bring_home
        yield "Compaction", self._compact
        yield "Upkeep of the id index", self._index
        yield "Clean-up of what was replaced or left behind", self._clean_up
        yield "Retention of record logs", self._logs
        yield "The search for orphans", self._orphans
        yield "Retention of manifests", self._manifests

    @contextmanager
    def _recorded(self, what: str) -> Iterator[None]:
        try:
            yield
        except (LakeError, OSError) as error:
            self.problems.append(f"{what} broke off: {error}")

    def _bring_home(self) -> None:
        for one in bring_home(self.run, self.at):
            self.came_home = _more(self.came_home, one)

    def _compact(self) -> None:
        for done in compact(self.run, self.at):
            self.compacted += done
            self.recorder.log(
                f"Compacted {plural(done.partitions, 'partition')}: "
                f"{plural(done.files_before, 'file')} are {done.files_after:,}"
            )

    def _index(self) -> None:
        self.index_days = tuple(drop_index_days(self.run, self.at))

    def _clean_up(self) -> None:
        context, state = self.run.context, self.run.catch_up()
        done = clean_up(
            context.storage, context.catalog, context.source, state, self.at, _AS_LONG_AS_IT_TAKES
        )
        self.removed |= {
            "replaced": done.replaced,
            "left behind": done.abandoned,
            "staging": done.staged,
        }

    def _logs(self) -> None:
        context = self.run.context
        self.removed["record log"] = remove_expired_logs(
            context.storage, context.catalog, context.settings, context.source, self.at
        )

    def _orphans(self) -> None:
        context, source = self.run.context, self.run.context.source
        state, days = self.run.catch_up(), source.retention.orphan_days
        found = find_orphans(context.storage, context.catalog, state, self.at, days)
        self.orphans = counted(found.waiting)
        self.removed["orphans"] = remove_orphans(context.storage, source.id, found, self.at)

    def _manifests(self) -> None:
        storage = self.run.context.storage
        self.removed["manifests"] = prune_manifests(storage, self.run.catch_up())

    def _tidy(self) -> None:
        """Remove empty folders."""
        context = self.run.context
        source_id = context.source.id
        for folder in (f"segment-data/data/{source_id}", paths.id_indexes(source_id)):
            context.storage.delete_empty_folders(folder)


def planned_upkeep(context: RunContext, at: datetime) -> UpkeepReport:
    """What an upkeep would do now, without changing anything."""
    storage, settings, source = context.storage, context.settings, context.source
    state = read_state(storage, source.id)
    chosen = to_compact(context, state, at)
    lying = measured(storage, settings, source)
    logs = [f for log in expired_logs(storage, settings, source, at) for f in storage.files(log)]
    replaced = due_places(storage, context.catalog, state, source.retention.replaced_hours, at)
    days = source.retention.orphan_days
    found = find_orphans(storage, context.catalog, state, at, days)
    removed = {
        "replaced": counted(f for place in replaced for f in storage.files(place)),
        "record log": counted(logs),
        "orphans": counted(found.due),
        "manifests": counted(spare_manifests(storage, state)),
    }
    return UpkeepReport(
        source_id=source.id,
        run_id=context.run_id,
        dagster_run_id="",
        start_time=at,
        finish_time=at,
        before=lying,
        after=lying,
        removed={reason: _amount(gone) for reason, gone in removed.items()},
        compacted=Compacted(
            partitions=len(chosen),
            rows=sum(one.partition.rows for one in chosen),
            files_before=sum(one.partition.files for one in chosen),
            files_after=sum(one.partition.files - one.saved for one in chosen),
            bytes_before=sum(one.partition.bytes for one in chosen),
            bytes_after=sum(one.partition.bytes for one in chosen),
        ),
        came_home=reduce(_more, away(context, state, at), Amount()),
        index_days=tuple(spare_days(state, source, at)),
        orphans=_amount(counted(found.waiting)),
        dry_run=True,
    )


def _more(amount: Amount, one: Candidate) -> Amount:
    return Amount(amount.files + one.partition.files, amount.bytes + one.partition.bytes)


def _amount(removed: Removed) -> Amount:
    return Amount(removed.files, removed.bytes)


def upkeep_context(
    lake: Lake, source: Source, listener: Listener, dagster_run_id: str = ""
) -> RunContext:
    """A run that begins now."""
    lake = lake.for_source(source)
    facts = RunFacts.of(lake.settings, source, new_run_id(), now(), dagster_run_id)
    return RunContext(
        lake.settings,
        source,
        lake.storage,
        lake.catalog,
        RunKind.UPKEEP,
        facts,
        _nothing_to_load,
        listener,
    )


def _nothing_to_load() -> Dataflow:
    raise AssertionError("an upkeep reads no raw files")
