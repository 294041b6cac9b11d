"""Suppression: events of certain users or anonymous visitors are not loaded."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from eventlake.rules.events import Reject, identifying
from eventlake.rules.parse import parse_value


class IdKind(StrEnum):
    """The field of an event that identifies a person."""

    USER = "userId"
    ANONYMOUS = "anonymousId"


_NAMED = re.compile(rb'"(userId|anonymousId)"\s*:\s*("(?:[^"\\]|\\.)*"|[^\s,"{}\[\]]+)')


@dataclass(frozen=True, slots=True)
class People:
    """The suppressed people of one source."""

    users: frozenset[str]
    anonymous: frozenset[str]

    def has(self, event: dict[str, Any]) -> bool:
        """Whether an event belongs to one of them; numeric ids match as they are written."""
        user, visitor = identifying(event.get("userId")), identifying(event.get("anonymousId"))
        return (user is not None and user in self.users) or (
            visitor is not None and visitor in self.anonymous
        )

    def are_named_in(self, line: bytes) -> bool:
        """Whether any of them occurs anywhere in a line, which may not be a valid event."""
        for field, value in _NAMED.findall(line):
            try:
                text = identifying(parse_value(value.decode()))
            except (Reject, UnicodeDecodeError):
                continue
            ids = self.users if field == b"userId" else self.anonymous
            if text is not None and text in ids:
                return True
        return False
