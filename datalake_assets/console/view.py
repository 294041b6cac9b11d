"""How facts look on a page: filters and functions of the templates."""

from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlencode

import msgspec
from markupsafe import Markup
from msgspec import json

from datalake_assets.console import charts
from datalake_assets.console.charts import sparkline
from eventlake.rules.clock import now
from eventlake.rules.text import (
    moment,
    number,
    percent,
    plain,
    plain_lines,
    plural,
    shown,
    size,
    span,
)


def when(at: datetime | None) -> Markup | str:
    """How long ago, or in how long; the time itself on hover."""
    if at is None:
        return "never"
    seconds = (now() - at).total_seconds()
    ago = span(abs(seconds)) if abs(seconds) >= 60 else "moments"
    text = f"{ago.split(' ')[0]} {ago.split(' ')[1]}" if abs(seconds) >= 60 else "moments"
    return Markup('<time datetime="{}" title="{} UTC">{}</time>').format(
        f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
        moment(at),
        f"{text} ago" if seconds >= 0 else f"in {text}",
    )


def clock(at: datetime | None) -> Markup | str:
    """A time in UTC; how long ago on hover."""
    if at is None:
        return "-"
    return Markup('<time datetime="{}">{}</time>').format(
        f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}", moment(at)
    )


def change(ratio: float | None) -> str:
    if ratio is None:
        return "-"
    return f"{100 * ratio:+.0f} %" if abs(ratio) >= 0.005 else "0 %"


def url(path: str, **values: object) -> str:
    """A path with a query; empty values are left out."""
    query = urlencode({k: v for k, v in values.items() if v not in (None, "")})
    return f"{quote(path)}?{query}" if query else quote(path)


def bytes_of(count: int | None) -> str:
    return number(None) if count is None else size(count)


def cell(value: Any) -> str:
    return "" if value is None else plain(shown(value))


def pretty(payload: str) -> str:
    """A raw line: JSON indented, anything else as it is."""
    try:
        return plain_lines(json.format(payload, indent=2))
    except msgspec.MsgspecError:
        return plain(payload)


FILTERS: dict[str, Any] = {
    "when": when,
    "clock": clock,
    "number": number,
    "size": bytes_of,
    "span": span,
    "percent": percent,
    "change": change,
    "plain": plain,
    "cell": cell,
    "pretty": pretty,
}
GLOBALS: dict[str, Any] = {
    "charts": charts,
    "sparkline": sparkline,
    "plural": plural,
    "url": url,
}
