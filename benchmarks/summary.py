"""What came out, as figures and as ratios to ours."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from rich.table import Table

from benchmarks.contest import Run


@dataclass(frozen=True, slots=True)
class Metric:
    """Something measured of a run; of `more` as of speed, a higher figure is better."""

    title: str
    value: Callable[[Run, int], float | None]  # given the number of events
    shown: Callable[[float], str]
    more: bool = False


def _megabytes(size: float) -> str:
    return f"{size / 1e6:,.0f} MB"


def _seconds(time: float) -> str:
    return f"{time:,.1f} s"


METRICS = (
    Metric("events/s", lambda run, events: events / run.measured.wall, "{:,.0f}".format, more=True),
    Metric("time", lambda run, _: run.measured.wall, _seconds),
    Metric("until it reads", lambda run, _: run.measured.ready, _seconds),
    Metric("CPU", lambda run, _: run.measured.cpu, _seconds),
    Metric("peak memory", lambda run, _: run.measured.peak_memory, _megabytes),
    Metric("written", lambda run, _: run.bytes, _megabytes),
    Metric("files", lambda run, _: run.files, "{:,.0f}".format),
)


def middle(runs: Sequence[Run], contestant: str, metric: Metric, events: int) -> float | None:
    """The median of a contestant's rounds."""
    values = [metric.value(run, events) for run in runs if run.contestant == contestant]
    known = [value for value in values if value is not None]
    return median(known) if known else None


def contestants_of(runs: Sequence[Run]) -> list[str]:
    return list(dict.fromkeys(run.contestant for run in runs))


def ratio_table(runs: Sequence[Run], events: int, ours: str) -> Table:
    """Figures with their ratio to ours behind them; the last column says whether all is right."""
    load = f"{min(run.load for run in runs):.1f} to {max(run.load for run in runs):.1f}"
    table = Table(title=f"{events:,} events; in brackets: {ours} = 1; load {load}")
    table.add_column("")
    for metric in METRICS:
        table.add_column(metric.title, justify="right")
    table.add_column("result")
    for name in contestants_of(runs):
        cells = []
        for metric in METRICS:
            value = middle(runs, name, metric, events)
            base = middle(runs, ours, metric, events)
            ratio = f" ({value / base:.2f})" if value is not None and base else ""
            cells.append("" if value is None else f"{metric.shown(value)}{ratio}")
        wrong = any(run.wrongs for run in runs if run.contestant == name)
        table.add_row(name, *cells, "[red]wrong[/red]" if wrong else "right")
    return table
