"""Charts as SVG, drawn by the server: labels, units, and a title for each mark on hover."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from math import floor, log10

from markupsafe import Markup

from eventlake.api.health import Counts
from eventlake.rules.text import percent, plural, size

_WIDTH, _GAP = 10, 2
_STEP = _WIDTH + _GAP
_HEIGHT = 104
_LEAST_DAYS = 14


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar; its title is shown on hover. `before` is drawn as a line, to compare with."""

    label: str
    value: float
    title: str
    before: float | None = None


def bars(found: Sequence[Bar], label: str, top: float, ticks: tuple[str, str]) -> Markup:
    """A chart as wide as its place: ticks at the top and in the middle, labels below."""
    if not any(bar.value or bar.before for bar in found):
        return Markup('<p class="none">No rows in this time.</p>')
    drawn = Markup("").join(
        Markup(
            '<g class="bar"><rect class="hit" x="{}" y="0" width="{}" height="{}"/>'
            '<rect class="ink" x="{}" y="{}" width="{}" height="{}"/><title>{}</title></g>'
        ).format(
            n * _STEP,
            _STEP,
            _HEIGHT,
            n * _STEP + _GAP / 2,
            round(_HEIGHT - _tall(bar.value, top, _HEIGHT), 2),
            _WIDTH,
            round(_tall(bar.value, top, _HEIGHT), 2),
            bar.title,
        )
        for n, bar in enumerate(found)
    )
    return Markup(
        '<figure class="chart"><div class="plot"><span class="tick-top">{}</span>'
        '<span class="tick-middle">{}</span><svg role="img" aria-label="{}" '
        'viewBox="0 0 {} {}" height="{}" preserveAspectRatio="none">{}{}</svg></div>'
        '<div class="ends"><span>{}</span><span>{}</span><span>{}</span></div></figure>'
    ).format(
        *(*ticks, label, len(found) * _STEP, _HEIGHT, _HEIGHT, drawn, _line(found, top)),
        *(found[0].label, found[len(found) // 2].label, found[-1].label),
    )


def _line(found: Sequence[Bar], top: float) -> Markup:
    """The values to compare with: a step above each bar, gaps where there are none."""
    steps = " ".join(
        f"M{n * _STEP} {round(_HEIGHT - bar.before / top * _HEIGHT, 2)}h{_STEP}"
        for n, bar in enumerate(found)
        if bar.before
    )
    return Markup('<path class="before" d="{}"/>').format(steps) if steps else Markup("")


def sparkline(values: Sequence[float], label: str, height: int = 26) -> Markup:
    """A small chart within a row, without labels."""
    most, width = max(values, default=0), len(values) * 6
    drawn = Markup("").join(
        Markup('<rect class="ink" x="{}" y="{}" width="4" height="{}"/>').format(
            n * 6,
            round(height - _tall(value, most, height), 2),
            round(_tall(value, most, height), 2),
        )
        for n, value in enumerate(values)
        if value
    )
    return Markup(
        '<svg class="spark" role="img" aria-label="{}" viewBox="0 0 {} {}" width="{}" height="{}">'
        '<title>{}</title><path class="base" d="M0 {}h{}"/>{}</svg>'
    ).format(label, width, height + 1, width, height + 1, label, height + 0.5, width, drawn)


def _tall(value: float, most: float, height: int) -> float:
    """At least a hairline for anything above zero."""
    return max(1.5, value / most * height) if value and most else 0


def nice(most: float) -> float:
    """The least 1, 2 or 5 times a power of ten, from a value on."""
    if most <= 0:
        return 1
    power = 10.0 ** floor(log10(most))
    return next(step * power for step in (1, 2, 5, 10) if most <= step * power * 1.000001)


def by_day(values: Mapping[str, int], label: str, week_before: bool = False) -> Markup:
    """Rows by day or hour; with lines for the same day of the week before, where that is known."""
    named = list(values)
    found = []
    for n, (day, rows) in enumerate(values.items()):
        before = values[named[n - 7]] if week_before and n >= 7 else None
        more = f", {before:,} a week before" if before is not None else ""
        found.append(Bar(day, rows, f"{day}: {plural(rows, 'row')}{more}", before))
    top = max(2, nice(max(values.values(), default=0)))
    said = f"{label}, {plural(sum(values.values()), 'row')}"
    return bars(found, said, top, (_short(top), _short(top / 2)))


def _short(count: float) -> str:
    """A tick of an axis: 2,000,000 is 2M."""
    for least, unit in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if count >= least:
            return f"{count / least:g}{unit}"
    return f"{count:g}"


def sizes(values: Mapping[str, int], label: str) -> Markup:
    found = [Bar(day, count, f"{day}: {size(count)}") for day, count in values.items()]
    top = nice(max(values.values(), default=0))
    return bars(found, label, top, (size(top), size(top / 2)))


def shares(values: Mapping[str, Counts], name: str, label: str) -> Markup:
    """The share of rows by day; days without syncs have no bar."""
    found = []
    for day, counts in values.items():
        count, share = getattr(counts, name), counts.share(getattr(counts, name))
        said = f"{day}: {percent(share)}, {count:,} of {plural(counts.rows_in, 'row')}"
        found.append(Bar(day, share or 0, said if counts.rows_in else f"{day}: no rows read"))
    return _of_shares(found, label)


def fill(values: Mapping[str, float], label: str) -> Markup:
    """The share of rows with a value, by day, always up to 100 %."""
    known = sorted(values)
    found = [
        Bar(day, values[day], f"{day}: {percent(values[day])}")
        if day in values
        else Bar(day, 0, f"{day}: no rows")
        for day in (days_until(known[-1], known[0]) if known else ())
    ]
    return bars(found, label, 1, ("100 %", "50 %"))


def _of_shares(found: Sequence[Bar], label: str) -> Markup:
    top = min(1, nice(max((bar.value for bar in found), default=0)))
    return bars(found, label, top, (percent(top), percent(top / 2)))


def days_until(last: str, first: str) -> list[str]:
    """All days from the first on, and enough before it for a chart."""
    end = date.fromisoformat(last)
    count = max(_LEAST_DAYS, (end - date.fromisoformat(first)).days + 1)
    return [str(end - timedelta(days=n)) for n in reversed(range(count))]


def balance(parts: Sequence[tuple[str, int]], label: str) -> Markup:
    """What became of all rows, as one bar; tiny parts keep a visible width."""
    known = [(n, name, count) for n, (name, count) in enumerate(parts) if count]
    total = sum(count for _, _, count in known)
    if not total:
        return Markup("")
    widths = [max(6.0, 1000 * count / total) for _, _, count in known]
    drawn, x = Markup(""), 0.0
    for (n, name, count), width in zip(known, widths, strict=True):
        drawn += Markup(
            '<g class="bar"><rect class="part{}" x="{}" width="{}" height="14"/>'
            "<title>{}: {}, {}</title></g>"
        ).format(n, round(x, 1), round(width - 2, 1), name, f"{count:,}", percent(count / total))
        x += width
    return Markup(
        '<svg class="balance" role="img" aria-label="{}" viewBox="0 0 {} 14" height="14" '
        'preserveAspectRatio="none">{}</svg>'
    ).format(label, round(sum(widths), 1), drawn)


@dataclass(frozen=True, slots=True)
class Cell:
    """A partition of the picture: its column and row, and how much is in it."""

    day: str
    hour: int | None
    rows: int
    files: int
    bytes: int


_LEVELS = 5
_CELL = 13


def partitions(cells: Iterable[Cell], days: Sequence[str], label: str) -> Markup:
    """Bytes of each partition by colour, days from left to right, hours from top to bottom."""
    found = list(cells)
    most = max((cell.bytes for cell in found), default=0)
    column = {day: n for n, day in enumerate(days)}
    rows = 24 if any(cell.hour is not None for cell in found) else 1
    drawn = Markup("").join(
        Markup(
            '<g class="bar"><rect class="level{}" x="{}" y="{}" width="11" height="11" rx="2"/>'
            "{}<title>{}</title></g>"
        ).format(
            1 + min(_LEVELS - 1, _LEVELS * cell.bytes // max(1, most)),
            column[cell.day] * _CELL,
            (cell.hour or 0) * _CELL,
            _many(column[cell.day] * _CELL, (cell.hour or 0) * _CELL) if cell.files > 1 else "",
            f"{cell.day}{'' if cell.hour is None else f' {cell.hour:02}:00'}: "
            f"{plural(cell.rows, 'row')}, {plural(cell.files, 'file')}, {size(cell.bytes)}",
        )
        for cell in found
        if cell.day in column
    )
    width, height = len(days) * _CELL, rows * _CELL
    hours = Markup('<div class="hours"><span>00</span><span>12</span><span>23</span></div>')
    return Markup(
        '<figure class="heat">{}<div><svg role="img" aria-label="{}" '
        'viewBox="0 0 {} {}" width="{}" height="{}">{}</svg>'
        '<div class="ends"><span>{}</span><span>{}</span></div></div></figure>'
    ).format(
        hours if rows > 1 else "", label, width, height, width, height, drawn, days[0], days[-1]
    )


def _many(x: int, y: int) -> Markup:
    """A dot: the partition has several files."""
    return Markup('<circle class="many" cx="{}" cy="{}" r="2"/>').format(x + 5.5, y + 5.5)
