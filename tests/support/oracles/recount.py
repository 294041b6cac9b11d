"""Counts an archive again from its bytes, slowly and obviously, knowing nothing of its making."""

import gzip
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, NoReturn

CALLS = ("track", "identify", "page", "screen", "group", "alias")
CUT_END = object()


@dataclass
class Recount:
    rows_in: int = 0
    rows: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    duplicates: Counter[tuple[str, str]] = field(default_factory=Counter)
    rejected: Counter[tuple[str, str | None]] = field(default_factory=Counter)


@dataclass
class Kept:
    received: datetime
    data: bytes


def recount(root: Path, loads: Iterable[Iterable[str]]) -> Recount:
    """What a lake holds after loading these groups of files (paths below root) in this order."""
    result = Recount()
    kept: dict[str, list[Kept]] = {}
    for load in loads:
        candidates = []
        for path in load:
            for number, line in enumerate(lines(root / path)):
                if isinstance(line, bytes) and not line.strip():
                    continue
                result.rows_in += 1
                reason, table, event = judge(line)
                if reason is not None:
                    result.rejected[reason, table] += 1
                else:
                    received = moment(event["receivedAt"])
                    candidates.append(
                        (received, path, number, str(event["messageId"]), table, line)
                    )
        for received, _, _, message_id, table, line in sorted(candidates, key=lambda c: c[:3]):
            same_id = kept.setdefault(message_id, [])
            near = [k for k in same_id if abs(k.received - received) <= timedelta(days=7)]
            if near:
                result.duplicates[table, likeness(line, near[0].data)] += 1
            else:
                same_id.append(Kept(received, line))
                result.rows[table, f"{received:%Y-%m-%d}", f"{received:%H}"] += 1
    return result


def lines(path: Path) -> Iterator[Any]:
    """The lines of a raw file, and CUT_END where the file was cut."""
    data = path.read_bytes()
    try:
        whole = gzip.decompress(data)
    except EOFError:
        yield from zlib.decompressobj(31).decompress(data).split(b"\n")[:-1]
        yield CUT_END
    else:
        found = whole.split(b"\n")
        yield from found if found[-1] else found[:-1]


def judge(line: Any) -> tuple[str | None, Any, Any]:
    """Why the line is rejected (or None), its table, the event."""
    if line is CUT_END:
        return "cut_off", None, None
    try:
        event = json.loads(line.decode(), parse_constant=refuse)
        json.dumps(event, ensure_ascii=False).encode()
    except UnicodeDecodeError:
        return "bad_utf8", None, None
    except UnicodeEncodeError:  # half of a surrogate pair
        return "lone_surrogate", None, None
    except ValueError:
        return "not_json", None, None
    if not isinstance(event, dict):
        return "not_an_object", None, None
    call = str(event.get("type")).lower()
    if call not in CALLS:
        return "unknown_type", None, None
    if call == "track" and event.get("event") is None:
        return "no_event_name", None, None
    if moment(event.get("receivedAt")) is None:
        return "no_received_at", None, None
    table = f"track_{snake(event['event'])}" if call == "track" else call
    if event.get("messageId") is None:
        return "no_message_id", table, None
    return None, table, event


def refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def snake(name: str) -> str:
    words = re.findall("[A-Z0-9]+[a-z0-9]*|[a-z0-9]+", name)
    return "_".join(words).lower() or hashed(name)


def hashed(name: str) -> str:
    """The name of a table whose event has no letter that a name may have."""
    return f"x_{sha256(name.encode()).hexdigest()[:8]}"


def moment(text: Any) -> Any:
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (TypeError, ValueError):
        return None


def likeness(line: bytes, kept: bytes) -> str:
    if line == kept:
        return "exact"
    one, other = json.loads(line), json.loads(kept)
    for event in (one, other):
        del event["receivedAt"], event["sentAt"]
    return "resent" if one == other else "other payload"
