"""The shape of a table's events, learned from them: by it many events become columns at once.

A parser that is told which fields to expect makes records instead of dictionaries, and a field of
many records is read out in one go. What a shape does not know it refuses, so that nothing is
missed: the event is read the slow way, and teaches the shape.
"""

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Any

import msgspec

from lake.staging.leaves import Event, Path

Record = Any
"""An event as a record of the shape that was known when it was parsed."""

MOST_FIELDS = 4_000  # beyond, events with other fields go the slow way

DOES_NOT_FIT = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What parsing by a shape raises for what is not JSON and for what the shape does not know."""


class _Object:
    """What is known of an object: the fields below it, None for those that are values."""

    __slots__ = ("fields", "record")

    def __init__(self) -> None:
        self.fields: dict[str, _Object | None] = {}
        self.record: type[msgspec.Struct] | None = None

    def learn(self, event: Event) -> int:
        """Take in the fields of an event; how many were new. What once was an object stays one."""
        new = 0
        for key, value in event.items():
            known = self.fields.get(key)
            if type(value) is dict:
                if known is None:
                    new += key not in self.fields
                    known = self.fields[key] = _Object()
                    self.record = None
                below = known.learn(value)
                if known.record is None:
                    self.record = None
                new += below
            elif key not in self.fields:
                self.fields[key] = None
                self.record = None
                new += 1
        return new

    def build(self) -> type[msgspec.Struct]:
        """The class of records for this object; fields in order of name, as payloads are hashed."""
        if self.record is None:
            keys = sorted(self.fields)
            fields: list[tuple[str, Any, None]] = []
            for place, key in enumerate(keys):
                below = self.fields[key]
                kind: Any = Any if below is None else below.build() | None
                fields.append((_attribute(place), kind, None))
            self.record = msgspec.defstruct(
                "Record",
                fields,
                rename={_attribute(place): key for place, key in enumerate(keys)},
                forbid_unknown_fields=True,
                omit_defaults=True,
                gc=False,
            )
        return self.record

    def columns(self, records: Sequence[Record], path: Path) -> Iterator[tuple[Path, list[Any]]]:
        """The values of every field below, None where a record has none."""
        for place, key in enumerate(sorted(self.fields)):
            values = list(map(attrgetter(_attribute(place)), records))
            below = self.fields[key]
            if below is None:
                yield (*path, key), values
            else:
                nothing = below.build()()
                objects = [nothing if value is None else value for value in values]
                yield from below.columns(objects, (*path, key))


def _attribute(place: int) -> str:
    return f"f{place}"


class Shape:
    """What is known of the events of one table, as a parser of them."""

    def __init__(self) -> None:
        self._root = _Object()
        self.fields = 0
        self._build()

    def _build(self) -> None:
        record = self._root.build()
        self.parse: Callable[[bytes], Record] = msgspec.json.Decoder(
            record, float_hook=msgspec.Raw
        ).decode
        self.nothing: Record = record()

    def learn(self, events: Sequence[Event]) -> bool:
        """Know the fields of these events from now on; whether there was anything to learn."""
        for event in events:
            if self.fields < MOST_FIELDS:
                self.fields += self._root.learn(event)
        if self._root.record is not None:
            return False
        self._build()
        return True

    def columns(self, records: Sequence[Record]) -> Iterator[tuple[Path, list[Any]]]:
        """The values of all fields that are not objects, None where a record has none."""
        return self._root.columns(records, ())

    def without(self, records: Sequence[Record], keys: Sequence[str]) -> Sequence[Record]:
        """The records themselves, rid of some fields at the top."""
        names = sorted(self._root.fields)
        for key in keys:
            if key in self._root.fields:
                name = _attribute(names.index(key))
                for record in records:
                    setattr(record, name, None)
        return records
