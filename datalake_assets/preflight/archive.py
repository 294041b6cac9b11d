"""Checks of the raw archive of a source and its syncs: why there may be no data."""

from collections.abc import Iterator
from functools import partial
from itertools import islice

from datalake_assets.instance.schedules import Schedules
from datalake_assets.preflight.finding import Finding, Remark, finding_of
from eventlake.columnar.raw_lines import RawLines
from eventlake.lake import Lake
from eventlake.rules.clock import now
from eventlake.rules.events import Reason, Reject, open_envelope
from eventlake.rules.parse import parse_line
from eventlake.rules.text import plural, size
from eventlake.runs.archive import archive_storage, list_archive
from eventlake.runs.plan import plan_sync
from eventlake.runs.report_history import newest_reports
from eventlake.settings.models import Source
from eventlake.state.source_state import read_state, refuse_changed_layout
from eventlake.status import source_status


def archive_findings(
    lake: Lake, source: Source, schedules: Schedules | None = None, *, closely: bool = False
) -> Iterator[Finding]:
    """Checks of archive and tables; of syncs and schedules only problems.

    With `closely`, some lines of the newest files are read as a sync would read them, and all
    problems are named that `datalake status` shows.
    """
    archive = finding_of(f"archive of {source.slug}", lambda: _archive(lake, source))
    tables = finding_of(f"tables of {source.slug}", lambda: _tables(lake, source))
    yield archive
    yield tables
    if archive.error or tables.error:
        return
    if closely:
        read = finding_of(f"lines of {source.slug}", lambda: _sample(lake, source))
        yield from [read] if read.message else []
    if not source.is_scheduled:
        off = "`schedule` is off" if source.enabled else "the source is not enabled"
        on = "a cron expression" if source.enabled else "`enabled: true`"
        yield Finding(
            f"schedule of {source.slug}",
            f"no syncs by schedule, since {off}: set {on} to have "
            f"them, or run `datalake sync --source {source.slug}`",
            warning=True,
        )
    elif schedules is not None and waiting_files(lake, source) and not schedules.is_on(source):
        yield Finding(
            f"schedule of {source.slug}",
            "off, and files wait: switch it on in the UI (Automation)",
            warning=True,
        )
    if not closely:
        return
    yield from _last_sync(lake, source)
    for problem in source_status(lake, source, now()).problems:
        if problem.kind not in _SHOWN:
            what = _ABOUT.get(problem.kind, "alert")
            yield Finding(f"{what} of {source.slug}", problem.text, warning=True)


_SHOWN = {"archive", "ignored", "moved", "sync_failures"}  # with more details
_ABOUT = {
    "damaged": "data",
    "changed": "raw files",
    "to_replay": "replay",
    "crashed": "run",
    "interrupted": "replay",
    "rejected_rows": "last load",
    "requested_types": "types",
}


def _archive(lake: Lake, source: Source) -> str:
    archive = list_archive(lake.storage, source)
    folders, ignored = archive.folders, archive.ignored(source, read_state(lake.storage, source.id))
    files = [file for stored in folders.values() for file in stored]
    place = archive_storage(lake.storage, source).full(source.raw)
    if not files:
        raise Remark(f"{place} holds no raw files yet")
    if source.start is not None and max(folders) < source.start:
        raise Remark(
            f"{place} holds {plural(len(files), 'file')}, all in day folders up to "
            f"{max(folders)}, which syncs ignore: `start` is {source.start}. "
            "Set an earlier `start` to load them"
        )
    waiting = waiting_files(lake, source)
    first, last = min(folders), max(folders)
    seen = f"{plural(len(files), 'file')}, {size(sum(file.size for file in files))}, "
    seen += f"day {first}" if first == last else f"days {first} to {last}"
    seen += f"; waiting for a sync: {waiting:,}" if waiting else ""
    seen = "; not taken: ".join([seen, *(["; ".join(map(str, ignored))] if ignored else [])])
    if any(not one.expected for one in ignored):
        raise Remark(seen)
    return seen


_SAMPLE_FILES, _SAMPLE_LINES, _SAMPLE_REASONS = 3, 200, 3


def _sample(lake: Lake, source: Source) -> str:
    """The lines that would be rejected, in a sample of the newest files."""
    raw = archive_storage(lake.storage, source)
    newest = list(list_archive(lake.storage, source).files.values())[-_SAMPLE_FILES:]
    rejected: dict[str, tuple[int, str]] = {}
    count = 0
    for file in newest:
        lines = RawLines(partial(raw.open_stream, file.path), source.limits.line_bytes)
        for number, line in islice(lines, _SAMPLE_LINES):
            count += bool(line.strip())
            if line.strip() and (why := _rejected(source, line)):
                times, first = rejected.get(why.reason, (0, f"{file.path} line {number}: {why}"))
                rejected[why.reason] = times + 1, first
    if rejected:
        total = sum(times for times, _ in rejected.values())
        most = sorted(rejected.values(), reverse=True)[:_SAMPLE_REASONS]
        reasons = [f"{times}, the first in {first}" for times, first in most]
        if more := len(rejected) - len(most):
            reasons.append(f"and {more} more reasons")
        raise Remark(
            f"{total} of {plural(count, 'line')} of a sample would be rejected: "
            f"{'; '.join(reasons)}"
        )
    return f"{plural(count, 'line')} of a sample can be loaded" if count else ""


def _rejected(source: Source, line: bytes) -> Reject | None:
    try:
        envelope = open_envelope(parse_line(line, source.limits))
    except Reject as why:
        return why
    if envelope.message_id is None and not source.load_without_message_id:
        return Reject(Reason.NO_MESSAGE_ID)
    return None


def waiting_files(lake: Lake, source: Source) -> int:
    """Files that the next sync would load."""
    state = read_state(lake.storage, source.id)
    return sum(len(unit.files) for unit in plan_sync(lake.storage, source, state).units)


def _tables(lake: Lake, source: Source) -> str:
    state = read_state(lake.storage, source.id)
    refuse_changed_layout(source, state)
    if moved := state.tables_elsewhere(source):
        raise Remark(moved)
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
