"""Whose events are not loaded: by the user, or by the anonymous visitor, that they name."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from eventlake.envelope import identifying
from eventlake.parse import parse_value
from eventlake.rejects import Reject
from eventlake.suppression.id_set import IdSet


class IdKind(StrEnum):
    """The field of an event that names a person."""

    USER = "userId"
    ANONYMOUS = "anonymousId"


_NAMED = re.compile(rb'"(userId|anonymousId)"\s*:\s*("(?:[^"\\]|\\.)*"|[^\s,"{}\[\]]+)')


@dataclass(frozen=True, slots=True)
class People:
    """The people of one source who are suppressed."""

    users: IdSet
    anonymous: IdSet

    def has(self, event: dict[str, Any]) -> bool:
        """Whether an event is of one of them; ids that are numbers count as they are written."""
        user, visitor = identifying(event.get("userId")), identifying(event.get("anonymousId"))
        return (user is not None and user in self.users) or (
            visitor is not None and visitor in self.anonymous
        )

    def are_named_in(self, line: bytes) -> bool:
        """Whether any of them stands in a line that may be no event, at whatever place."""
        for field, value in _NAMED.findall(line):
            try:
                text = identifying(parse_value(value.decode()))
            except (Reject, UnicodeDecodeError):
                continue
            ids = self.users if field == b"userId" else self.anonymous
            if text is not None and text in ids:
                return True
        return False
