"""`datalake audit`: compares the lake with the raw archive."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import timedelta
from typing import Any

import typer

from datalake_assets.cli.invocation import AsJson, From, RequiredSource, To, invocation
from datalake_assets.cli.output import err, fail, grid, note, number, print_json, say, show, warn
from eventlake.audit.audit import Audit, PartitionAudit
from eventlake.audit.audit import audit as carry_out
from eventlake.audit.snapshot import FIRST, LAST, Scope
from eventlake.rules.clock import parse_hour, parse_range
from eventlake.rules.text import plain, plural
from eventlake.runs.unit import Window

_SHOWN = 20
_NAMED = 3
_EVERY_SECONDS = 10.0


def audit(
    context: typer.Context,
    source: RequiredSource,
    first: From = None,
    end: To = None,
    as_json: AsJson = False,
) -> None:
    """Read the raw archive again and check that every event is in the lake exactly once.

    Times are hours of receivedAt in UTC, YYYY-MM-DDTHH; --to is exclusive. Without them, the audit
    covers everything. It changes nothing. Exit code 1: lake and archive differ.

    \b
    Examples:
      datalake audit --source ios_prod
      datalake audit --source ios_prod --from 2026-10-01 --to 2026-10-08 --json
    """
    lake = invocation(context).lake()
    scope = Scope(lake.settings.source(source), _window(first, end))
    with _progress() as progress:
        found = carry_out(lake, scope, progress)
    if as_json:
        print_json(_as_dict(found))
    else:
        _show(found)
    _show_remarks(found)
    if not found.agrees:
        fail(_verdict(found))
        raise typer.Exit(1)


def _window(first: str | None, end: str | None) -> Window:
    if first is not None and end is not None:
        return Window(*parse_range(first, end))
    return Window(parse_hour(first) if first else FIRST, parse_hour(end) if end else LAST)


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """Show progress: in place on a terminal, else a line every ten seconds."""
    console = err()
    if console.is_terminal:
        with console.status("") as status:
            yield status.update
        return
    last = time.monotonic()

    def progress(message: str) -> None:
        nonlocal last
        if time.monotonic() - last >= _EVERY_SECONDS:
            last = time.monotonic()
            note(message)

    yield progress


def _show(found: Audit) -> None:
    total = found.total
    say(
        f"{found.scope.source.slug}, {found.scope}: "
        f"{plural(len(found.raw.read), 'raw file')}, {plural(total.rows_in, 'row')} = "
        f"{total.loaded:,} in the lake + {total.duplicates:,} duplicates "
        f"+ {total.rejected:,} rejected + {total.suppressed:,} suppressed "
        f"+ {total.skipped:,} skipped + {total.waiting:,} waiting + {total.missing:,} missing"
    )
    columns = ("rows_in", "loaded", "duplicates", "rejected", "skipped", "waiting", "missing")
    more = ("unexpected", "doubled")
    rows = [
        (table.name or "(no table)", *(number(getattr(table, name)) for name in (*columns, *more)))
        for table in found.tables
    ]
    names = ("rows in", "in the lake", *columns[2:], *more)
    spare = ("skipped", "waiting", "rejected", "duplicates")
    if rows:
        show(grid(rows, left=("table",), right=names, spare=spare))
    if found.partitions:
        _show_differences(found.partitions)
    elif not found.tables:
        say("Nothing to compare: neither the archive nor the lake has rows in this range.")
    elif found.total.waiting:
        say("What was loaded agrees: every event that belongs in the lake is there, exactly once.")
    else:
        say("All agrees: every event that belongs in the lake is there, exactly once.")


def _show_differences(partitions: tuple[PartitionAudit, ...]) -> None:
    say("Differences:")
    kinds = ("missing", "unexpected", "doubled")
    rows = [
        (
            one.name,
            one.partition,
            "; ".join((*one.problems, *(f"{kind}: {id}" for kind, id in one.examples))),
            *(number(getattr(one, name)) for name in ("expected", "found", *kinds)),
        )
        for one in partitions[:_SHOWN]
    ]
    left = ("table", "partition", "for example")
    show(grid(rows, left=left, right=("should be", "are", *kinds)))
    if len(partitions) > _SHOWN:
        note(f"… and {plural(len(partitions) - _SHOWN, 'more partition')}; --json has all")


def _show_remarks(found: Audit) -> None:
    """Facts that are no differences, but explain them."""
    raw = found.raw
    if raw.waiting:
        note(f"Waiting for the next sync: {_listed(raw.waiting)}")
    if raw.before_start:
        note(f"Before the source's start, so that no sync loads them: {_listed(raw.before_start)}")
    if raw.changed:
        warn(f"Changed after being loaded: {_listed(raw.changed)}. A replay takes the new content.")
    if raw.gone:
        warn(
            f"No longer in the archive: {_listed([entry.path for entry in raw.gone])}. "
            f"{plural(found.total.unchecked, 'row')} of the lake cannot be checked."
        )


def _listed(files: Sequence[str]) -> str:
    named = ", ".join(map(plain, files[:_NAMED])) + (", …" if len(files) > _NAMED else "")
    return f"{plural(len(files), 'raw file')} ({named})"


def _verdict(found: Audit) -> str:
    """The differences in numbers, and the command that repairs them."""
    total, count = found.total, len(found.partitions)
    return (
        f"{plural(count, 'partition')} of {found.scope.source.slug} "
        f"{'differs' if count == 1 else 'differ'} from the archive: {total.missing:,} missing, "
        f"{total.unexpected:,} unexpected, {total.doubled:,} doubled. If settings changed since, "
        "that may be why: audits apply the current ones, as replays do. To load the range again: "
        f"{_replay(found)}"
    )


def _replay(found: Audit) -> str:
    """The command that replays all partitions that differ."""
    layout = found.scope.source.date_partition
    values = [[part.split("=", 1)[1] for part in p.partition.split("/")] for p in found.partitions]
    starts = [layout.parse(one) for one in values]
    last = max(starts)
    with suppress(OverflowError):  # no hour follows the last one of the calendar
        last += timedelta(hours=1 if layout.has_hours else 24)
    first, end = (moment.isoformat(timespec="hours")[:13] for moment in (min(starts), last))
    return f"datalake replay --source {found.scope.source.slug} --from {first} --to {end}"


def _as_dict(found: Audit) -> dict[str, Any]:
    window = found.scope.window
    counts = {k: v for k, v in asdict(found.total).items() if k not in ("table", "name")}
    return {
        "source": found.scope.source.slug,
        "from": None if window.start == FIRST else window.start,
        "to": None if window.end == LAST else window.end,
        "agrees": found.agrees,
        **counts,
        "tables": [asdict(table) for table in found.tables],
        "differences": [
            asdict(one) | {"examples": [{"kind": k, "message_id": id} for k, id in one.examples]}
            for one in found.partitions
        ],
        "raw_files": {
            "read": len(found.raw.read),
            "waiting": found.raw.waiting,
            "before_start": found.raw.before_start,
            "changed": found.raw.changed,
            "gone": [entry.path for entry in found.raw.gone],
        },
    }
