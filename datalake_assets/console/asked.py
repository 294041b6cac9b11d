"""What a page is asked for: its parameters, each checked, and who asks."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import date

import msgspec

from datalake_assets.console.access import User
from eventlake.api import EventLake
from eventlake.records.logs import Cursor
from eventlake.rules.errors import UsageError

_LONGEST = 500


class BadRequest(UsageError):
    """A parameter that no page of the console would send."""


@dataclass(frozen=True)
class Asked:
    """One request; `values` are those of the query, or of the form that was sent."""

    my: EventLake
    user: User
    values: Mapping[str, str]
    path: Mapping[str, str] = field(default_factory=dict)
    posted: bool = False

    def text(self, name: str, longest: int = _LONGEST) -> str:
        value = self.values.get(name, "").strip()
        if len(value) > longest:
            raise BadRequest(f"`{name}` has {len(value):,} characters; {longest:,} are allowed.")
        if "\0" in value:
            raise BadRequest(f"`{name}` has a character that no text has.")
        return value

    def one_of(self, name: str, allowed: Collection[str], default: str = "") -> str:
        """A value of a list; nothing means the default."""
        value = self.text(name)
        if value and value not in allowed:
            raise BadRequest(f"`{name}` is {value!r}; allowed are {', '.join(allowed)}.")
        return value or default

    def number(self, name: str, default: int, allowed: range) -> int:
        value = self.text(name, 12)
        if not value:
            return default
        if not (value.isascii() and value.isdecimal()) or int(value) not in allowed:
            raise BadRequest(
                f"`{name}` is {value!r}; allowed are {allowed.start} to {allowed.stop - 1}."
            )
        return int(value)

    def day(self, name: str) -> date | None:
        value = self.text(name, 10)
        try:
            return date.fromisoformat(value) if value else None
        except ValueError:
            raise BadRequest(f"`{name}` is {value!r}; write a day as 2026-10-01.") from None

    def source(self) -> str | None:
        """The slug of a source, or None for all."""
        value = self.text("source")
        return self.my.lake.settings.source(value).slug if value else None

    def cursor(self) -> Cursor:
        value = self.text("after", 30)
        try:
            file, row = (int(part) for part in value.split("-")) if value else (0, 0)
        except ValueError:
            raise BadRequest(f"`after` is {value!r}; follow the links of a page.") from None
        if not (0 <= file < 1 << 20 and 0 <= row < 1 << 40):
            raise BadRequest(f"`after` is {value!r}; follow the links of a page.")
        return Cursor(file, row)


def encoded(model: object) -> bytes:
    """The JSON twin of a page."""
    return msgspec.json.Encoder(decimal_format="number", enc_hook=str).encode(model)


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The answer is another page."""

    path: str
