"""What an event type is to the generator."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from eventlake.sample.draw import Draw

Fields: TypeAlias = dict[str, object]


@dataclass(frozen=True, slots=True)
class Kind:
    """An event type: how often it is sent, what it carries, and the table it must end up in.

    Tables are written out, so that the generator's account owes nothing to the lake's name rule.
    """

    table: str
    weight: int
    fields: Callable[[Draw], Fields]
    call: str = "track"
    names: Sequence[str] = ()  # of a track or page; several are spellings of one
    since: int = 1  # the day, from 1, on which it is first sent
