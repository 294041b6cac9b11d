"""Records of a run, and the story of one event."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from datalake_assets.console.access import audit
from datalake_assets.console.asked import Asked
from datalake_assets.console.downloads import TYPES, Download, as_file
from eventlake.api.records import Records
from eventlake.load.record_log import SCHEMA
from eventlake.records.find import Found, LakeRow
from eventlake.rules.names import MESSAGE_ID

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
    user: str
    text: str
    records: tuple[dict[str, Any], ...]
    problems: tuple[str, ...]
    after: str
    raw: str


def record_logs(asked: Asked, console: "Console") -> RecordsPage:
    logs = tuple(_log_line(one) for one in asked.my.record_logs(_LOGS))
    return RecordsPage(None, logs, "", "", "", "", (), (), "", "")


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
    user, text = asked.text("user"), asked.text("text")
    found = everything.of(*([status] if status else []))
    if kind := asked.one_of("download", TYPES):
        return _download(asked, found, id, user, text, kind)
    problems: list[str] = []
    after = None
    if id:
        rows, problems = found.find(id)
    elif user:
        rows = found.of_user(user).to_pylist()
    else:
        page, after = found.page(asked.cursor(), _RECORDS, text)
        rows = page.to_pylist()
    return RecordsPage(
        log=_log_line(everything),
        logs=(),
        status=status,
        id=id,
        user=user,
        text=text,
        records=tuple(rows),
        problems=tuple(problems),
        after=f"{after.file}-{after.row}" if after else "",
        raw=f"{everything.log.source.raw}/",
    )


def _download(asked: Asked, found: Records, id: str, user: str, text: str, kind: str) -> Download:
    """What a page shows and all that follows, or a sample of all records."""
    size = asked.number("sample", 0, range(1, 1_000_001))
    tables: Iterable[pa.Table] = found.sample(size) if size else found.matching(text)
    if id:
        tables = [pa.Table.from_pylist(found.find(id)[0], SCHEMA)]
    elif user:
        tables = [found.of_user(user)]
    run, wanted = found.log.run_id, {"id": id, "user_id": user, "text": text, "sample": size}
    audit(asked.user, "download", run=run, types=sorted(found.types), format=kind, **wanted)
    return as_file(tables, SCHEMA, f"records-{run}", kind)


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
    return FindPage(q, tuple(_story(asked, one, q) for one in asked.my.find(q)) if q else ())


def _story(asked: Asked, found: Found, id: str) -> Story:
    return Story(
        source=found.source.slug,
        rows=tuple(
            asdict(row) | {"run_id": row.run_id, "values": _values(asked, found, row, id)}
            for row in found.rows
        ),
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


def _values(asked: Asked, found: Found, row: LakeRow, id: str) -> dict[str, Any]:
    """The columns of a row that have a value; none of suppressed people."""
    table = asked.my.table(f"{row.database}.{row.table_name}")
    named = (f"{key}={{}}" for key in table.entry.partition_keys)
    layout = "/".join(named)
    here = [one for one in table.partitions() if layout.format(*one.values) == row.partition]
    is_it = pc.field(MESSAGE_ID.name(found.source.naming)) == id
    rows = table.rows_of(here, filter=is_it).to_pylist()
    return {k: v for k, v in rows[0].items() if v is not None} if rows else {}
