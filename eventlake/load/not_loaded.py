"""Records that were not loaded, read again from their raw files: payload and reason."""

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from typing import Any

import pyarrow as pa

from eventlake.columnar.line_blocks import LineBlock
from eventlake.columnar.raw_lines import RawLines
from eventlake.load.record_log import (
    DUPLICATE,
    OTHER_PAYLOAD,
    BatchType,
    LogJob,
    NotLoaded,
    RecordLog,
)
from eventlake.load.seen import SKIPPED, SUPPRESSED
from eventlake.load.stage_job import RawFile
from eventlake.rules.events import Envelope, Reason, Reject, message_id, open_envelope
from eventlake.rules.names import catalog_table, table_name
from eventlake.rules.parse import parse_line
from eventlake.rules.partitions import partition_of

_BATCH_TYPES = {
    SKIPPED: BatchType.SKIPPED,
    SUPPRESSED: BatchType.SUPPRESSED,
    DUPLICATE: BatchType.DUPLICATE,
    OTHER_PAYLOAD: BatchType.DUPLICATE,
    Reason.NO_MESSAGE_ID: BatchType.NULL,
}
BATCH, BATCH_BYTES = 10_000, 32 << 20  # records and payloads held as Python objects


def log_not_loaded(job: LogJob, files: Sequence[NotLoaded]) -> None:
    """Write the records of those lines of some files that were not loaded."""
    with RecordLog(job.storage, job.folder, job.operation) as log:
        for one in files:
            for batch_type, records in _records(job, one):
                log.add(batch_type, pa.Table.from_pylist(records), f"not loaded: {one.file.path}")


def _records(job: LogJob, one: NotLoaded) -> Iterator[tuple[BatchType, list[dict[str, Any]]]]:
    """Records by batch type, a bounded number at a time."""
    reasons = dict(zip(one.lines.tolist(), one.reasons, strict=True))
    pending: dict[BatchType, list[dict[str, Any]]] = {}
    count, size = 0, 0
    for number, line, broken in _lines(job, one.file, reasons):
        reason = reasons[number]
        batch_type = _BATCH_TYPES.get(reason, BatchType.REJECTED)
        record = _record(job, one.file, number, line, reason, broken)
        pending.setdefault(batch_type, []).append(record)
        count, size = count + 1, size + len(line)
        if count >= BATCH or size >= BATCH_BYTES:
            yield from pending.items()
            pending, count, size = {}, 0, 0
    yield from pending.items()


def _lines(
    job: LogJob, file: RawFile, wanted: dict[int, str]
) -> Iterator[tuple[int, bytes, Reject | None]]:
    """The lines asked for; at the place where the file is broken there is none, but the cause."""
    lines = RawLines(lambda: job.raw.open_stream(file.path), job.limits.line_bytes)
    block, before, asked = LineBlock(job.limits.line_bytes), 0, deque(sorted(wanted))
    block.begin(file.number, 0)
    for piece in lines.pieces():
        before += yield from _taken(block, block.add(piece), before, asked)
        if not asked:
            return
    before += yield from _taken(block, block.end(whole=lines.broken is None), before, asked)
    if asked:  # the line at which reading stopped
        yield asked.popleft(), b"", Reject(Reason.CUT_OFF, lines.broken or "")


def _taken(
    block: LineBlock, count: int, before: int, asked: deque[int]
) -> Generator[tuple[int, bytes, Reject | None], None, int]:
    """Those of the lines that have ended which are asked for; the number of lines that ended."""
    starts, ends = block.starts(), block.ends()
    while asked and asked[0] <= before + count:
        number = asked.popleft()
        at = number - before - 1
        line = block.text(int(starts[at]), int(ends[at]))
        yield number, line[: block.limit + 1], None
    block.clear()
    return count


def _record(
    job: LogJob, file: RawFile, number: int, line: bytes, reason: str, broken: Reject | None
) -> dict[str, Any]:
    event, envelope, why = _read(job, line) if broken is None else (None, None, broken)
    identity = message_id(event) if event is not None else None
    record = {
        "identifier": identity or f"{file.path}:{number}",
        "record_payload": _payload(job, line, reason, event),
        "status_message": _message(job, reason, why),
        "raw_file": file.path,
        "raw_line": number,
        "table_name": None,
        "partition": None,
    }
    if envelope is not None:
        table = table_name(envelope.type, envelope.event, job.naming)
        record["table_name"] = catalog_table(table, job.table_prefix)
        record["partition"] = partition_of(job.date_partition, envelope.received_at)
    return record


def _payload(job: LogJob, line: bytes, reason: str, event: dict[str, Any] | None) -> str | None:
    """The line as it is; nothing if it names a suppressed person."""
    if reason == SUPPRESSED:
        return None
    if job.suppression is not None:
        people = job.suppression.people(job.storage)
        if people.are_named_in(line) if event is None else people.has(event):
            return None
    return line.decode(errors="replace") or None


def _read(job: LogJob, line: bytes) -> tuple[dict[str, Any] | None, Envelope | None, Reject | None]:
    """As much of a line as can be read, and what stops it."""
    event: dict[str, Any] | None = None
    try:
        event = parse_line(line, job.limits)
        return event, open_envelope(event), None
    except Reject as reject:
        return event, None, reject


def _message(job: LogJob, reason: str, why: Reject | None) -> str:
    if reason in (DUPLICATE, OTHER_PAYLOAD):
        other = "; its payload is another" if reason == OTHER_PAYLOAD else ""
        return (
            f"An event with the same messageId, received within {job.dedup_days} days of this one, "
            f"is in the lake{other}."
        )
    if reason == SKIPPED:
        return "Its table is listed in `skip_events`."
    if reason == SUPPRESSED:
        return "Its user is suppressed."
    if why is not None and why.reason == reason:
        return str(why)
    return str(Reject(Reason(reason)))
