"""The payload of a loaded record, which is in the raw archive, not in the log."""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Any

import pyarrow as pa

from eventlake.columnar.raw_lines import RawLines
from eventlake.load.record_log import BatchType
from eventlake.records.logs import RunLog, search
from eventlake.rules.events import Reject, message_id
from eventlake.rules.parse import parse_line
from eventlake.rules.suppression import People
from eventlake.settings.models import Limits
from eventlake.storage import Storage

Record = dict[str, Any]
_PAYLOAD = "record_payload"
_HIDDEN = "Its user is suppressed, so the payload is not shown."


def with_payloads(
    storage: Storage,
    logs: Sequence[RunLog],
    records: Sequence[Record],
    limits: Limits,
    people: People | None = None,
    archive: Storage | None = None,
) -> tuple[list[Record], list[str]]:
    """Records of one identifier with the available payloads, and reasons why others are missing.

    Payloads of `people`, the suppressed users, are never shown. Neither are those of an identifier
    that any log of the source has as suppressed, even if an earlier run has loaded the record.
    Raw files are read from the `archive`, if that is not the lake's storage.
    """
    wanted = [r for r in records if r["status"] == "succeeded" and r["record_payload"] is None]
    if not wanted:
        return list(records), []
    files = [file for log in logs for file in log.of([BatchType.SUPPRESSED])]
    if search(storage, files, wanted[0]["identifier"]):
        return list(records), [_HIDDEN]
    payloads: dict[tuple[str, int], str] = {}
    problems: list[str] = []
    for path in sorted({record["raw_file"] for record in wanted}):
        mine = {r["raw_line"]: r["identifier"] for r in wanted if r["raw_file"] == path}
        lines = dict(_lines(archive or storage, path, mine, limits))
        for number, identifier in mine.items():
            if people is not None and people.are_named_in(lines.get(number, b"")):
                problems.append(_HIDDEN)
            elif _is(identifier, lines.get(number), limits):
                payloads[path, number] = lines[number].decode()
            else:
                problems.append(
                    f"The payload cannot be shown: line {number} of {path} is no longer this "
                    "event. The file was changed or removed after it was loaded."
                )
    filled = [
        r | {"record_payload": payloads.get((r["raw_file"], r["raw_line"]), r["record_payload"])}
        for r in records
    ]
    return filled, problems


def redacted(tables: Iterable[pa.Table], people: People | None) -> Iterator[pa.Table]:
    """Records without the payloads of people that were suppressed after the run."""
    for table in tables:
        if people is not None:
            kept = [
                None if payload is None or people.are_named_in(payload.encode()) else payload
                for payload in table[_PAYLOAD].to_pylist()
            ]
            at = table.schema.get_field_index(_PAYLOAD)
            table = table.set_column(at, table.schema.field(at), pa.array(kept, pa.string()))
        yield table


def _lines(
    storage: Storage, path: str, numbers: Iterable[int], limits: Limits
) -> Iterator[tuple[int, bytes]]:
    """Some lines of a raw file; reads no further than the last of them."""
    waiting = set(numbers)
    if not storage.exists(path):
        return
    for number, line in RawLines(lambda: storage.open_stream(path), limits.line_bytes):
        if number in waiting:
            yield number, line
            waiting.remove(number)
            if not waiting:
                return


def _is(identifier: str, line: bytes | None, limits: Limits) -> bool:
    if line is None:
        return False
    try:
        found = message_id(parse_line(line, limits))
    except Reject:
        return False
    return identifier == (found or sha256(line).hexdigest())
