"""Records that were not loaded, from their staged lines: payload and reason."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa

from eventlake.load.blobs import Blob
from eventlake.load.record_log import (
    DUPLICATE,
    OTHER_PAYLOAD,
    BatchType,
    LogJob,
    NotLoaded,
    RecordLog,
)
from eventlake.load.seen import SKIPPED, SUPPRESSED, split_positions
from eventlake.load.staged_lines import StagedLines
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
CHUNKS = 16  # fetched at once
Fetch = Callable[[Sequence[Blob]], list[Blob]]


def log_not_loaded(
    job: LogJob, parts: Sequence[tuple[Sequence[Blob], NotLoaded]], fetch: Fetch
) -> None:
    """Write the records of rows that were not loaded, each part with the chunk of its lines."""
    with RecordLog(job.storage, job.folder, job.operation) as log:
        for part in range(0, len(parts), CHUNKS):
            some = parts[part : part + CHUNKS]
            fetched = iter(fetch([blob for blobs, _ in some for blob in blobs]))
            for blobs, rows in some:
                lines = StagedLines(islice(fetched, len(blobs)))
                origin = f"not loaded: {rows.positions[0]}"
                for batch_type, records in _records(job, rows, lines):
                    log.add(batch_type, pa.Table.from_pylist(records), origin)


def _records(
    job: LogJob, rows: NotLoaded, lines: StagedLines
) -> Iterator[tuple[BatchType, list[dict[str, Any]]]]:
    """Records by batch type, a bounded number at a time."""
    pending: dict[BatchType, list[dict[str, Any]]] = {}
    count, size = 0, 0
    files, numbers = split_positions(rows.positions)
    whole = (part.tolist() for part in (rows.positions, files, numbers, rows.reasons))
    for position, file, number, code in zip(*whole, strict=True):
        reason, line = job.reasons[code], lines.line(position)
        broken = None
        if line is None:  # where reading stopped
            broken = Reject(Reason(reason), job.broken.get(file, ""))
        line = (line or b"")[: job.limits.line_bytes + 1]
        batch_type = _BATCH_TYPES.get(reason, BatchType.REJECTED)
        record = _record(job, job.raw_files[file], number, line, reason, broken)
        pending.setdefault(batch_type, []).append(record)
        count, size = count + 1, size + len(line)
        if count >= BATCH or size >= BATCH_BYTES:
            yield from pending.items()
            pending, count, size = {}, 0, 0
    yield from pending.items()


def _record(
    job: LogJob, file: str, number: int, line: bytes, reason: str, broken: Reject | None
) -> dict[str, Any]:
    event, envelope, why = _read(job, line) if broken is None else (None, None, broken)
    identity = message_id(event) if event is not None else None
    record = {
        "identifier": identity or f"{file}:{number}",
        "record_payload": _payload(job, line, reason, event),
        "status_message": _message(job, reason, why),
        "raw_file": file,
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
    """The line as text; empty if it contains a suppressed person."""
    if reason == SUPPRESSED:
        return None
    if job.suppression is not None:
        people = job.suppression.people(job.storage)
        if people.are_named_in(line) if event is None else people.has(event):
            return None
    return line.decode(errors="replace") or None


def _read(job: LogJob, line: bytes) -> tuple[dict[str, Any] | None, Envelope | None, Reject | None]:
    """The readable beginning of a line, and the error that follows."""
    event: dict[str, Any] | None = None
    try:
        event = parse_line(line, job.limits)
        return event, open_envelope(event), None
    except Reject as reject:
        # Not `reject` itself: with its traceback it is part of a cycle, and there may be millions.
        return event, None, Reject(reject.reason, reject.detail)


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
