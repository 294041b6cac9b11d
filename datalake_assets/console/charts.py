"""Bar charts as SVG, drawn by the server: labels, units, and a title for every bar on hover."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from eventlake.api.health import Counts
from eventlake.rules.text import plural, size


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar; its title is shown on hover."""

    label: str
    value: float
    title: str


_WIDTH, _GAP = 10, 2


def bars(found: Sequence[Bar], label: str, height: int = 96, top: str = "") -> Markup:
    """A chart as wide as its place; without any value, a line says so."""
    most = max((bar.value for bar in found), default=0)
    if not most:
        return Markup('<p class="none">No rows in this time.</p>')
    step, width = _WIDTH + _GAP, len(found) * (_WIDTH + _GAP)
    drawn = Markup("").join(
        Markup(
            '<g class="bar"><rect class="hit" x="{}" y="0" width="{}" height="{}"/>'
            '<rect class="ink" x="{}" y="{}" width="{}" height="{}"/><title>{}</title></g>'
        ).format(
            n * step,
            step,
            height,
            n * step + _GAP / 2,
            round(height - _tall(bar.value, most, height), 2),
            _WIDTH,
            round(_tall(bar.value, most, height), 2),
            bar.title,
        )
        for n, bar in enumerate(found)
    )
    scale = Markup('<div class="scale"><span>{}</span></div>').format(top) if top else Markup("")
    ends = Markup('<div class="ends"><span>{}</span><span>{}</span></div>').format(
        found[0].label, found[-1].label
    )
    return Markup(
        '<figure class="chart" role="img" aria-label="{}">{}<svg viewBox="0 0 {} {}" height="{}" '
        'preserveAspectRatio="none">{}</svg>{}</figure>'
    ).format(label, scale, width, height, height, drawn, ends)


def sparkline(values: Sequence[float], label: str, height: int = 28) -> Markup:
    """A small chart within a row, without labels."""
    most = max(values, default=0)
    drawn = Markup("").join(
        Markup('<rect class="ink" x="{}" y="{}" width="4" height="{}"/>').format(
            n * 6,
            round(height - _tall(value, most, height), 2),
            round(_tall(value, most, height), 2),
        )
        for n, value in enumerate(values)
        if most
    )
    return Markup(
        '<svg class="spark" role="img" aria-label="{}" viewBox="0 0 {} {}" width="{}" height="{}">'
        "<title>{}</title>{}</svg>"
    ).format(label, len(values) * 6, height, len(values) * 6, height, label, drawn)


def _tall(value: float, most: float, height: int) -> float:
    """At least a hairline for anything above zero."""
    return max(1.5, value / most * height) if value and most else 0


def by_day(values: dict[str, int], label: str) -> Markup:
    """Rows by day, or by hour."""
    found = [Bar(day, rows, f"{day}: {plural(rows, 'row')}") for day, rows in values.items()]
    return bars(found, label, top=plural(max(values.values(), default=0), "row"))


def sizes(values: dict[str, int], label: str) -> Markup:
    found = [Bar(day, count, f"{day}: {size(count)}") for day, count in values.items()]
    return bars(found, label, top=size(max(values.values(), default=0)))


def shares(values: dict[str, Counts], name: str, label: str) -> Markup:
    """The share of rows by day; days without syncs have no bar."""
    found = []
    for day, counts in values.items():
        count, share = getattr(counts, name), counts.share(getattr(counts, name))
        said = f"{day}: {percent(share)}, {count:,} of {plural(counts.rows_in, 'row')}"
        found.append(Bar(day, share or 0, said))
    return bars(found, label, top=percent(max((bar.value for bar in found), default=0)))


def percent(share: float | None) -> str:
    if share is None:
        return "-"
    if not share:
        return "0 %"
    if share < 0.001:
        return "< 0.1 %"
    return f"{100 * share:.1f} %" if share < 0.1 else f"{100 * share:.0f} %"
