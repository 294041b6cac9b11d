"""An event as its leaves: every value that is neither null nor an object, with the path to it."""

from collections.abc import Iterator
from typing import Any

import msgspec

Event = dict[str, Any]
Path = tuple[str, ...]


def leaves(event: Event, above: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The leaves of an event, in its order."""
    for key, value in event.items():
        if type(value) is dict:
            yield from leaves(value, (*above, key))
        elif value is not None:
            yield (*above, key), value


def rescued_members(values: dict[str, Any]) -> list[str]:
    """Rescued values as members of the JSON object in `rescued_data`: `"<pointer>":<value>`."""
    return [msgspec.json.encode({at: value}).decode()[1:-1] for at, value in values.items()]
