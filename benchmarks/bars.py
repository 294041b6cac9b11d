"""Bar charts as SVG, drawn by hand: panels side by side, a bar for each name."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_BAR, _GAP, _NAMES, _PANEL, _HEAD, _MARGIN = 18, 8, 190, 210, 64, 16
_OURS, _OTHERS = "#2f6f4f", "#9aa5b1"


@dataclass(frozen=True, slots=True)
class Bar:
    """A value, and how it is written beside its bar."""

    value: float
    label: str


@dataclass(frozen=True, slots=True)
class Panel:
    """One thing measured: a bar for each name, or None where there is none."""

    title: str
    bars: Sequence[Bar | None]


def bar_chart(title: str, names: Sequence[str], panels: Sequence[Panel], ours: set[str]) -> str:
    """The whole picture; the bars of `ours` have another colour."""
    width = _MARGIN * 2 + _NAMES + _PANEL * len(panels)
    height = _HEAD + (_BAR + _GAP) * len(names) + _MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        _text(_MARGIN, 24, title, size=15),
    ]
    for row, name in enumerate(names):
        parts.append(_text(_MARGIN + _NAMES - 8, _baseline(row), name, anchor="end"))
    for place, panel in enumerate(panels):
        left = _MARGIN + _NAMES + _PANEL * place
        parts.append(_text(left, _HEAD - 12, panel.title, size=13))
        longest = max((bar.value for bar in panel.bars if bar), default=0) or 1
        for row, (name, bar) in enumerate(zip(names, panel.bars, strict=True)):
            if bar is not None:
                length = max(1.0, (_PANEL - 100) * bar.value / longest)
                colour = _OURS if name in ours else _OTHERS
                parts.append(
                    f'<rect x="{left}" y="{_top(row)}" width="{length:.1f}" height="{_BAR}" '
                    f'fill="{colour}"/>'
                )
                parts.append(_text(left + length + 5, _baseline(row), bar.label))
    return "\n".join([*parts, "</svg>\n"])


def _top(row: int) -> int:
    return _HEAD + (_BAR + _GAP) * row


def _baseline(row: int) -> int:
    return _top(row) + _BAR - 5


def _text(x: float, y: float, text: str, size: int = 12, anchor: str = "start") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="#222">'
        f"{escape(text)}</text>"
    )
