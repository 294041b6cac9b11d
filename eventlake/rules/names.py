"""Names of tables and columns, and JSON pointers.

Notes:
- A path is named segment by segment, so `properties.注册` is `properties_x_…`, not `properties`.
- Top-level fields that are not standard follow the same rule as all others:
  `writeKey` is `write_key`, `_metadata.bundled` is `metadata_bundled`.
- In native naming `event` holds the event's name as sent. In warehouse naming it holds the name by
  the name rule, which is the same for all rows of a table, and `event_text` the name as sent.
- Some column names are taken and cannot be had by other fields (`column_name` gives None, and the
  value is rescued): `message_id` and `received_at`, on which duplicates and partitions rest; the
  partition keys, which engines refuse to see twice; `rescued_data`; and in warehouse naming, for
  properties and traits, the standard columns that the event type uses itself. A property fills
  the others: `traits.name` is the `name` of identifies, `properties.name` is rescued in pages.
- Tables are cut at 242 characters and not at 250, because file systems allow a folder name of 255
  and the folder is called `segment_type=<table>`.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from hashlib import sha256

from eventlake.rules.types import LakeType

NAME_LENGTH = 250
TABLE_LENGTH = 255 - len("segment_type=")
RESCUED_DATA = "rescued_data"
EVENT_TEXT = "event_text"
PARTITION_KEYS = frozenset({"year", "month", "day", "hr"})

_WORDS = re.compile(r"[A-Z0-9]+[a-z0-9]*|[a-z0-9]+")
_HASH_DIGITS = 8
_CACHED_NAMES = 65_536


class Naming(StrEnum):
    """The naming convention of a source."""

    NATIVE = "native"
    WAREHOUSE = "warehouse"


@dataclass(frozen=True, slots=True)
class StandardColumn:
    """A column of every table, and the top-level field it comes from."""

    native: str
    field: str
    type: LakeType

    def name(self, naming: Naming) -> str:
        """The name of the column in this naming convention."""
        return "id" if naming is Naming.WAREHOUSE and self.field == "messageId" else self.native

    @property
    def pointer(self) -> str:
        return f"/{self.field}"


STANDARD_COLUMNS: tuple[StandardColumn, ...] = (
    StandardColumn("message_id", "messageId", LakeType.STRING),
    StandardColumn("anonymous_id", "anonymousId", LakeType.STRING),
    StandardColumn("user_id", "userId", LakeType.STRING),
    StandardColumn("group_id", "groupId", LakeType.STRING),
    StandardColumn("previous_id", "previousId", LakeType.STRING),
    StandardColumn("event", "event", LakeType.STRING),
    StandardColumn("name", "name", LakeType.STRING),
    StandardColumn("category", "category", LakeType.STRING),
    StandardColumn("type", "type", LakeType.STRING),
    StandardColumn("channel", "channel", LakeType.STRING),
    StandardColumn("project_id", "projectId", LakeType.STRING),
    StandardColumn("version", "version", LakeType.STRING),
    StandardColumn("received_at", "receivedAt", LakeType.TIMESTAMP),
    StandardColumn("sent_at", "sentAt", LakeType.TIMESTAMP),
    StandardColumn("timestamp", "timestamp", LakeType.TIMESTAMP),
    StandardColumn("original_timestamp", "originalTimestamp", LakeType.TIMESTAMP),
)

MESSAGE_ID, RECEIVED_AT = (
    next(column for column in STANDARD_COLUMNS if column.field == field)
    for field in ("messageId", "receivedAt")
)
_STANDARD = {naming: {c.name(naming): c for c in STANDARD_COLUMNS} for naming in Naming}
_RELIED_UPON = ("messageId", "receivedAt")
_CONTENT = ("properties", "traits")
# The fields of standard columns that only some event types use; all types use the others.
_OF_SOME_TYPES = {
    "groupId": ("group",),
    "previousId": ("alias",),
    "event": ("track",),
    "name": ("page", "screen"),
    "category": ("page", "screen"),
}
_WAREHOUSE_TABLES = {
    "identify": "identifies",
    "page": "pages",
    "screen": "screens",
    "group": "groups",
    "alias": "aliases",
}
_WAREHOUSE_TYPES = {table: event_type for event_type, table in _WAREHOUSE_TABLES.items()}
_TRACK = "track_"


@lru_cache(_CACHED_NAMES)
def snake(name: str, limit: int = NAME_LENGTH) -> str:
    """The name rule: `productID` is `product_id`, `A/B Test` is `a_b_test`."""
    return _fit(_snake(name), limit)


@lru_cache(_CACHED_NAMES)
def column_name(
    path: tuple[str, ...],
    naming: Naming = Naming.NATIVE,
    event_type: str = "track",
    partition_keys: tuple[str, ...] | frozenset[str] = PARTITION_KEYS,
    limit: int = NAME_LENGTH,
) -> str | None:
    """The column of a field, or None if the field has no column and is rescued.

    By default no layout's partition keys can be columns; give the table's own to be exact.
    """
    column = _fit("_".join(map(_snake, _named_part(path, naming))), limit)
    if column == RESCUED_DATA or column in partition_keys:
        return None
    if naming is Naming.WAREHOUSE and event_type == "track" and column in ("event", EVENT_TEXT):
        return EVENT_TEXT if path == ("event",) else None
    standard = _STANDARD[naming].get(column)
    if standard is None or path == (standard.field,):
        return column
    hidden = (
        naming is Naming.WAREHOUSE
        and path[0] in _CONTENT
        and event_type in _OF_SOME_TYPES.get(standard.field, (event_type,))
    )
    return None if hidden or standard.field in _RELIED_UPON else column


@lru_cache(_CACHED_NAMES)
def is_spelled_like_column(path: tuple[str, ...], naming: Naming = Naming.NATIVE) -> bool:
    """Whether a field has the name of its column; it then wins over others of that column."""
    named = _named_part(path, naming)
    return "_".join(named) == "_".join(map(_snake, named))


@lru_cache(_CACHED_NAMES)
def table_name(event_type: str, event: str | None = None, naming: Naming = Naming.NATIVE) -> str:
    """The table of an event, without prefix; `event_type` is one of the six, in lower case."""
    if event_type != "track":
        return event_type if naming is Naming.NATIVE else _WAREHOUSE_TABLES[event_type]
    if event is None:
        raise ValueError("a track has a table only by its event name")
    name = _snake(event)
    if naming is Naming.NATIVE or name in _WAREHOUSE_TYPES:
        name = f"{_TRACK}{name}"
    return _fit(name, TABLE_LENGTH)


def type_of_table(table: str, naming: Naming) -> str:
    """The event type of the rows of a table."""
    if naming is Naming.WAREHOUSE:
        return _WAREHOUSE_TYPES.get(table, "track")
    return "track" if table.startswith(_TRACK) else table


def event_of_table(table: str, naming: Naming) -> str | None:
    """The value of `event` in all rows of a table; None if each row has its own, or none."""
    if naming is Naming.NATIVE or table in _WAREHOUSE_TYPES:
        return None
    name = table.removeprefix(_TRACK)
    return name if name in _WAREHOUSE_TYPES else table


def catalog_table(table: str, prefix: str | None) -> str:
    """The name of a table in the catalog."""
    return _fit(f"{prefix}_{table}", NAME_LENGTH) if prefix else table


@lru_cache(_CACHED_NAMES)
def pointer(path: tuple[str, ...]) -> str:
    """The JSON pointer (RFC 6901) to a field."""
    return "".join(f"/{key.replace('~', '~0').replace('/', '~1')}" for key in path)


def pointer_path(text: str) -> tuple[str, ...]:
    """The path of a JSON pointer; the inverse of `pointer`."""
    return tuple(k.replace("~1", "/").replace("~0", "~") for k in text.split("/")[1:])


def _snake(name: str) -> str:
    return "_".join(_WORDS.findall(name)).lower() or f"x_{_digest(name)}"


def _named_part(path: tuple[str, ...], naming: Naming) -> tuple[str, ...]:
    """The part of a path that names its column."""
    if naming is Naming.WAREHOUSE:
        if path == ("messageId",):
            return ("id",)
        if len(path) > 1 and path[0] in _CONTENT:
            return path[1:]
    return path


def _fit(name: str, limit: int) -> str:
    """Shorten a long name so that it stays unique."""
    if len(name) <= limit:
        return name
    return f"{name[: limit - _HASH_DIGITS - 1]}_{_digest(name)}"


def _digest(name: str) -> str:
    return sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_DIGITS]
