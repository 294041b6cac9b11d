"""Raw files made different line by line, into what the sample itself does not offer."""

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

from msgspec import Raw
from msgspec.json import Decoder, encode

from eventlake.sample.archive import gzipped, write_if_different

Event: TypeAlias = dict[str, Raw]
Change: TypeAlias = Callable[[Event, int], None]

_DECODER = Decoder(Event)
_ONLY_EVENT = "Product Viewed"
_POOL = 500


def one_type(path: Path) -> Change:
    """All events as product views, with the properties of some that are real ones."""
    name = encode(_ONLY_EVENT)
    pool = [
        event["properties"]
        for event, _ in zip(
            (event for event in _events(path) if bytes(event.get("event", b"")) == name),
            range(_POOL),
            strict=False,
        )
    ]

    def change(event: Event, number: int) -> None:
        for key in ("name", "category", "traits", "groupId", "previousId"):
            event.pop(key, None)
        event["type"] = Raw(b'"track"')
        event["event"] = Raw(name)
        event["properties"] = pool[number % len(pool)]

    return change


def more_columns(columns: int, each: int) -> Change:
    """Some of so many further properties in each event: wide tables are sparse ones."""

    def change(event: Event, number: int) -> None:
        first = number * each
        extra = b",".join(
            b'"extra_%03d":%d' % ((first + place) % columns, number + place)
            for place in range(each)
        )
        known = bytes(event.get("properties", b"{}"))[1:]
        event["properties"] = Raw(b"{" + extra + (b"" if known == b"}" else b",") + known)

    return change


def reshape(path: Path, change: Change) -> None:
    """Change every event of a raw file."""

    def lines() -> Iterator[bytes]:
        for number, event in enumerate(_events(path)):
            change(event, number)
            yield encode(event)

    write_if_different(path, gzipped(lines()))


def _events(path: Path) -> Iterator[Event]:
    with gzip.open(path) as lines:
        for line in lines:
            yield _DECODER.decode(line)
