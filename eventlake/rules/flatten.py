"""Flattening an event: every value that is neither null nor an object, with its path."""

from collections.abc import Iterator
from typing import Any

import msgspec

Event = dict[str, Any]
Path = tuple[str, ...]


def leaves(event: Event, above: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The leaves of an event, in their order."""
    for key, value in event.items():
        if type(value) is dict:
            yield from leaves(value, (*above, key))
        elif value is not None:
            yield (*above, key), value


def rescued_members(values: dict[str, Any]) -> list[str]:
    """Rescued values as members of the JSON object in `rescued_data`: `"<pointer>":<value>`."""
    return [msgspec.json.encode({at: value}).decode()[1:-1] for at, value in values.items()]
