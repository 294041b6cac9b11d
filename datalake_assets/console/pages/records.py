"""Records of a run, and the story of one event."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from datalake_assets.console.access import audit
from datalake_assets.console.asked import Asked
from datalake_assets.console.downloads import TYPES, Download, as_file
from eventlake.api.records import Records
from eventlake.load.record_log import SCHEMA
from eventlake.records.find import Found

if TYPE_CHECKING:
    from datalake_assets.console.app import Console


STATUSES = ("succeeded", "rejected", "NULL", "DUPLICATE", "suppressed", "skipped")
_LOGS = 50
_RECORDS = 50


@dataclass(frozen=True, slots=True)
class LogLine:
    run_id: str
    source: str
    kind: str
    state: str
    started: datetime
    counts: dict[str, int]


@dataclass(frozen=True, slots=True)
class RecordsPage:
    """Some records of a run, or the runs that have records; `after` leads to the next ones."""

    log: LogLine | None
    logs: tuple[LogLine, ...]
    status: str
    id: str
    text: str
    records: tuple[dict[str, Any], ...]
    problems: tuple[str, ...]
    after: str
    raw: str


def record_logs(asked: Asked, console: "Console") -> RecordsPage:
    logs = tuple(_log_line(one) for one in asked.my.record_logs(_LOGS))
    return RecordsPage(None, logs, "", "", "", (), (), "", "")


def _log_line(records: Records) -> LogLine:
    log = records.log
    return LogLine(
        log.run_id,
        log.source.slug,
        log.run.kind,
        log.run.state,
        log.run.started_at,
        records.by_status(),
    )


def records(asked: Asked, console: "Console") -> RecordsPage | Download:
    everything = asked.my.records(asked.path["run"])
    status, id = asked.one_of("status", STATUSES), asked.text("id")
    text, kind = asked.text("text"), asked.one_of("download", TYPES)
    found = everything.of(*([status] if status else []))
    if kind:
        return _download(asked, found, id, kind)
    problems: list[str] = []
    if id:
        rows, problems = found.find(id)
        after = None
    else:
        page, after = found.page(asked.cursor(), _RECORDS, text)
        rows = page.to_pylist()
    return RecordsPage(
        log=_log_line(everything),
        logs=(),
        status=status,
        id=id,
        text=text,
        records=tuple(rows),
        problems=tuple(problems),
        after=f"{after.file}-{after.row}" if after else "",
        raw=f"{everything.log.source.raw}/",
    )


def _download(asked: Asked, found: Records, id: str, kind: str) -> Download:
    size = asked.number("sample", 0, range(1, 1_000_001))
    tables: Iterable[pa.Table] = found.sample(size) if size else found
    if id:
        tables = [pa.Table.from_pylist(found.find(id)[0], SCHEMA)]
    run_id = found.log.run_id
    audit(asked.user, "download", run=run_id, types=sorted(found.types), id=id, format=kind)
    return as_file(tables, SCHEMA, f"records-{run_id}", kind)


@dataclass(frozen=True, slots=True)
class Story:
    """What is known of an event in a source."""

    source: str
    rows: tuple[dict[str, Any], ...]
    occurrences: tuple[dict[str, Any], ...]
    searched_logs: int
    searched_days: int


@dataclass(frozen=True, slots=True)
class FindPage:
    q: str
    stories: tuple[Story, ...]


def find(asked: Asked, console: "Console") -> FindPage:
    q = asked.text("q")
    return FindPage(q, tuple(_story(one) for one in asked.my.find(q)) if q else ())


def _story(found: Found) -> Story:
    return Story(
        source=found.source.slug,
        rows=tuple(asdict(row) | {"run_id": row.run_id} for row in found.rows),
        occurrences=tuple(
            {
                "run_id": one.log.run_id,
                "kind": one.log.run.kind,
                "when": one.when,
                "now": one.now,
                "now_in": one.now_in,
                **{k: v for k, v in one.record.items() if k != "record_payload"},
            }
            for one in found.occurrences
        ),
        searched_logs=found.searched.runs,
        searched_days=len(found.searched.index_days),
    )
