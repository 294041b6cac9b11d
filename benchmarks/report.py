"""Results as tables on the console and as bar charts in SVG."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from statistics import median

from rich.table import Table

from benchmarks.contest import Run
from benchmarks.contestants import COMMAND, ENGINE
from benchmarks.growth import CaseRuns

_OURS = {ENGINE.name, COMMAND.name}
_BAR, _GAP, _NAMES, _PANEL, _HEAD, _MARGIN = 18, 8, 190, 210, 64, 16
_OUR_COLOUR, _PEER_COLOUR = "#2f6f4f", "#9aa5b1"


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure of a run."""

    title: str
    value: Callable[[Run, int], float | None]  # given the run and the number of events
    format: Callable[[float], str]


def _megabytes(size: float) -> str:
    return f"{size / 1e6:,.0f} MB"


def _seconds(time: float) -> str:
    return f"{time:,.1f} s"


_METRICS = (
    Metric("events/s", lambda run, events: events / run.measured.wall, "{:,.0f}".format),
    Metric("time", lambda run, _: run.measured.wall, _seconds),
    Metric("start-up", lambda run, _: run.measured.ready, _seconds),
    Metric("CPU", lambda run, _: run.measured.cpu, _seconds),
    Metric("peak memory", lambda run, _: run.measured.peak_memory, _megabytes),
    Metric("written", lambda run, _: run.bytes, _megabytes),
    Metric("files", lambda run, _: run.files, "{:,.0f}".format),
)


def _median(runs: Sequence[Run], contestant: str, metric: Metric, events: int) -> float | None:
    values = [metric.value(run, events) for run in runs if run.contestant == contestant]
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _contestants(runs: Sequence[Run]) -> list[str]:
    return list(dict.fromkeys(run.contestant for run in runs))


def _verdict(is_correct: bool) -> str:
    return "correct" if is_correct else "[red]wrong[/red]"


def peers_table(runs: Sequence[Run], events: int) -> Table:
    """Medians of each contestant, with their ratio to the engine in brackets."""
    load = f"{min(run.load for run in runs):.1f} to {max(run.load for run in runs):.1f}"
    table = Table(title=f"{events:,} events; in brackets: ratio to {ENGINE.name}; load {load}")
    table.add_column("")
    for metric in _METRICS:
        table.add_column(metric.title, justify="right")
    table.add_column("result")
    for name in _contestants(runs):
        cells = []
        for metric in _METRICS:
            value = _median(runs, name, metric, events)
            base = _median(runs, ENGINE.name, metric, events)
            ratio = f" ({value / base:.2f})" if value is not None and base else ""
            cells.append("" if value is None else f"{metric.format(value)}{ratio}")
        is_correct = not any(run.errors for run in runs if run.contestant == name)
        table.add_row(name, *cells, _verdict(is_correct))
    return table


def peers_chart(title: str, runs: Sequence[Run], events: int) -> str:
    names = _contestants(runs)
    panels = []
    for metric in _METRICS:
        values = [_median(runs, name, metric, events) for name in names]
        bars = [None if value is None else (value, metric.format(value)) for value in values]
        panels.append(Panel(metric.title, bars))
    return _bar_chart(title, names, panels, _OURS)


def growth_table(title: str, cases: Sequence[CaseRuns]) -> Table:
    """Figures of each case, with their ratio to the first case in brackets."""
    loads = [run.load for case in cases for run in case.runs]
    table = Table(title=f"{title} (load {min(loads):.1f} to {max(loads):.1f})")
    table.title_justify = "left"
    table.add_column("")
    for head in ("lines", "time", "after start-up", "CPU", "peak memory", "files"):
        table.add_column(head, justify="right")
    table.add_column("result")
    first = cases[0]
    for case in cases:
        table.add_row(
            case.case,
            f"{case.lines:,}",
            f"{_seconds(case.time)} ({case.time / first.time:.2f})",
            f"{_seconds(case.after_start)} ({case.after_start / first.after_start:.2f})",
            f"{_seconds(case.cpu)} ({case.cpu / first.cpu:.2f})",
            f"{_megabytes(case.memory)} ({case.memory / first.memory:.2f})",
            f"{case.runs[-1].files:,}",
            _verdict(case.is_correct),
        )
    return table


def growth_chart(title: str, cases: Sequence[CaseRuns]) -> str:
    panels = [
        Panel("time after start-up", [(c.after_start, _seconds(c.after_start)) for c in cases]),
        Panel("CPU", [(c.cpu, _seconds(c.cpu)) for c in cases]),
        Panel("peak memory", [(c.memory, _megabytes(c.memory)) for c in cases]),
    ]
    names = [case.name for case in cases]
    return _bar_chart(title, names, panels, set(names))


@dataclass(frozen=True, slots=True)
class Panel:
    """One metric: for each name a value and its label, or None if there is no value."""

    title: str
    bars: Sequence[tuple[float, str] | None]


def _bar_chart(title: str, names: Sequence[str], panels: Sequence[Panel], ours: set[str]) -> str:
    """Panels side by side with one bar per name; the bars of `ours` have their own colour."""
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
    for column, panel in enumerate(panels):
        left = _MARGIN + _NAMES + _PANEL * column
        parts.append(_text(left, _HEAD - 12, panel.title, size=13))
        longest = max((bar[0] for bar in panel.bars if bar), default=0) or 1
        for row, (name, bar) in enumerate(zip(names, panel.bars, strict=True)):
            if bar is not None:
                value, label = bar
                length = max(1.0, (_PANEL - 100) * value / longest)
                colour = _OUR_COLOUR if name in ours else _PEER_COLOUR
                parts.append(
                    f'<rect x="{left}" y="{_top(row)}" width="{length:.1f}" height="{_BAR}" '
                    f'fill="{colour}"/>'
                )
                parts.append(_text(left + length + 5, _baseline(row), label))
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
