"""Counts and adds up an archive from its bytes, by a second, plain implementation of the rules.

It uses json and decimal of Python and nothing of the lake. The naming is `native`.
"""

import gzip
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, Decimal, localcontext
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NoReturn

CALLS = ("track", "identify", "page", "screen", "group", "alias")
CUT_END = object()
WEEK = timedelta(days=7)


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
            near = [k for k in same_id if abs(k.received - received) <= WEEK]
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


NUMERIC = ("bigint", "decimal(38,6)")


@dataclass(frozen=True)
class ColumnSum:
    type: str
    nulls: int
    sum: Decimal | int = 0  # of numbers


@dataclass(frozen=True)
class TableSum:
    rows: int
    columns: dict[str, ColumnSum]


STRINGS = (
    *("messageId", "anonymousId", "userId", "groupId", "previousId", "event", "name", "category"),
    *("type", "channel", "projectId", "version"),
)
TIMES = ("receivedAt", "sentAt", "timestamp", "originalTimestamp")
NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
DATE = re.compile(
    r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d(:?\d\d)?)?)?", re.ASCII
)


@dataclass
class Event:
    table: str
    id: str
    received: datetime
    cells: dict[str, Any]
    homeless: bool  # whether two keys met in one column


@dataclass
class Column:
    kinds: set[str] = field(default_factory=set)
    type: str = ""
    values: int = 0
    sum: Decimal = Decimal(0)


@dataclass
class Table:
    rows: int = 0
    rescued: int = 0
    columns: dict[str, Column] = field(default_factory=dict)


def raw_sums(root: Path, loads: Iterable[Iterable[str]]) -> dict[str, TableSum]:
    """By table name, after loading these groups of files (paths below root) in this order."""
    tables: dict[str, Table] = {}
    kept: dict[str, list[datetime]] = {}
    with localcontext(prec=200):
        for load in loads:
            events = [event for path in sorted(load) for event in events_of(root / path)]
            is_kept = keep_first(events, kept)
            made = {e.table for e, keep in zip(events, is_kept, strict=True) if keep} | set(tables)
            for event in events:
                if event.table in made:
                    note_kinds(tables.setdefault(event.table, new_table()), event)
            for table in tables.values():
                for column in table.columns.values():
                    column.type = column.type or inferred(column.kinds)
            for event, keep in zip(events, is_kept, strict=True):
                if keep:
                    add(tables[event.table], event)
    return {name: summed(table) for name, table in tables.items()}


def events_of(path: Path) -> Iterator[Event]:
    for line in lines(path):
        if isinstance(line, bytes) and not line.strip():
            continue
        reason, table, _ = judge(line)
        if reason is None:
            event = json.loads(line, parse_float=Decimal)
            cells, homeless = flattened(event)
            received = moment(event["receivedAt"])
            yield Event(table, str(event["messageId"]), received, cells, homeless)


def flattened(event: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """Values by column; of two keys that meet, the one spelled like the column wins."""
    cells: dict[str, tuple[bool, Any]] = {}
    homeless = False
    for path, value in leaves(event):
        column, is_spelled = named(path)
        homeless |= column in cells
        if column not in cells or (is_spelled and not cells[column][0]):
            cells[column] = is_spelled, value
    return {column: value for column, (_, value) in cells.items()}, homeless


def leaves(value: dict[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[Any, Any]]:
    for key, inner in value.items():
        if isinstance(inner, dict):
            yield from leaves(inner, (*above, key))
        elif inner is not None:
            yield (*above, key), inner


@cache
def named(path: tuple[str, ...]) -> tuple[str, bool]:
    """The column of a path, and whether it is spelled like it."""
    column = "_".join(map(snake, path))
    return column, column == "_".join(path)


def keep_first(events: list[Event], kept: dict[str, list[datetime]]) -> list[bool]:
    """What the lake has stays; of the rest the earliest of each id and week."""
    result = [False] * len(events)
    for place in sorted(range(len(events)), key=lambda place: (events[place].received, place)):
        event = events[place]
        times = kept.setdefault(event.id, [])
        if not any(abs(event.received - time) <= WEEK for time in times):
            times.append(event.received)
            result[place] = True
    return result


def new_table() -> Table:
    strings = {snake(key): Column(type="string") for key in STRINGS}
    return Table(columns=strings | {snake(key): Column(type="timestamp") for key in TIMES})


def note_kinds(table: Table, event: Event) -> None:
    for name, value in event.cells.items():
        table.columns.setdefault(name, Column()).kinds.add(kind(value))


def kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return "bigint"
    if isinstance(value, int | Decimal):
        return "decimal(38,6)" if abs(rounded(value)) < 10**32 else "string"
    return "timestamp" if is_date(value) else "string"


def inferred(kinds: set[str]) -> str:
    if len(kinds) == 1:
        return next(iter(kinds))
    return "decimal(38,6)" if kinds == {"bigint", "decimal(38,6)"} else "string"


def add(table: Table, event: Event) -> None:
    table.rows += 1
    rescued = event.homeless
    for name, value in event.cells.items():
        column = table.columns[name]
        cell, exact = cast(value, column.type)
        rescued |= not exact
        column.values += cell is not None
        if column.type in NUMERIC and cell is not None:
            column.sum += cell
    table.rescued += rescued


def cast(value: Any, into: str) -> tuple[Any, bool]:
    """The cell, and whether nothing was lost; texts and times are given back as they are."""
    if into == "string":
        return value, True
    if value == "":
        return None, True
    if into == "timestamp":
        return (value, True) if is_date(value) else (None, False)
    if into == "boolean":
        spelled = isinstance(value, str) and value.lower() in ("true", "false")
        return (value, True) if isinstance(value, bool) or spelled else (None, False)
    number = spelled_number(value)
    if number is None:
        return None, False
    if into == "bigint":
        cell = number.to_integral_value(ROUND_DOWN)
        fits = -(2**63) <= cell < 2**63
    else:
        cell = rounded(number)
        fits = abs(cell) < 10**32
    return (cell, cell == number) if fits else (None, False)


def spelled_number(value: Any) -> Decimal | None:
    if isinstance(value, str):
        return Decimal(value) if NUMBER.fullmatch(value) else None
    is_number = isinstance(value, int | Decimal) and not isinstance(value, bool)
    return Decimal(value) if is_number else None


def rounded(number: Decimal | int) -> Decimal:
    return Decimal(number).quantize(Decimal("0.000001"), ROUND_HALF_EVEN)


def is_date(value: Any) -> bool:
    """Nothing in the sample has more than microseconds, which would be lossy."""
    fits = isinstance(value, str) and DATE.fullmatch(value) is not None
    return fits and moment(value) is not None


def summed(table: Table) -> TableSum:
    columns = {
        name: ColumnSum(column.type, table.rows - column.values, column.sum)
        for name, column in table.columns.items()
    }
    if table.rescued:
        columns["rescued_data"] = ColumnSum("string", table.rows - table.rescued)
    return TableSum(table.rows, columns)
