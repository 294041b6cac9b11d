"""What cases took, as a table and a plot; ratios are to the first case of a scenario."""

from collections.abc import Sequence
from statistics import median

import msgspec
from rich.table import Table

from benchmarks.bars import Bar, Panel, bar_chart
from benchmarks.contest import Run
from benchmarks.growth.scenarios import Scenario


class CaseRuns(msgspec.Struct, frozen=True):
    """The rounds of one case."""

    scenario: str
    case: str
    lines: int
    runs: list[Run]

    @property
    def name(self) -> str:
        return f"{self.scenario}: {self.case}"

    @property
    def time(self) -> float:
        return median(run.measured.wall for run in self.runs)

    @property
    def after_start(self) -> float:
        """Without what it takes until the first raw file is read; all, if none was."""
        return median(run.measured.wall - (run.measured.ready or 0) for run in self.runs)

    @property
    def cpu(self) -> float:
        return median(run.measured.cpu for run in self.runs)

    @property
    def memory(self) -> float:
        return max(run.measured.peak_memory for run in self.runs)

    @property
    def is_right(self) -> bool:
        return not any(run.wrongs for run in self.runs)


def growth_table(scenario: Scenario, cases: Sequence[CaseRuns]) -> Table:
    loads = [run.load for case in cases for run in case.runs]
    title = f"{scenario.name}: {scenario.says} (load {min(loads):.1f} to {max(loads):.1f})"
    table = Table(title=title, title_justify="left")
    table.add_column("")
    for head in ("lines", "time", "after start-up", "CPU", "peak memory", "files"):
        table.add_column(head, justify="right")
    table.add_column("result")
    first = cases[0]
    for case in cases:
        table.add_row(
            case.case,
            f"{case.lines:,}",
            f"{case.time:.1f} s ({case.time / first.time:.2f})",
            f"{case.after_start:.1f} s ({case.after_start / first.after_start:.2f})",
            f"{case.cpu:.1f} s ({case.cpu / first.cpu:.2f})",
            f"{case.memory / 1e6:,.0f} MB ({case.memory / first.memory:.2f})",
            f"{case.runs[-1].files:,}",
            "right" if case.is_right else "[red]wrong[/red]",
        )
    return table


def growth_chart(cases: Sequence[CaseRuns]) -> str:
    panels = [
        Panel("time after start-up", [Bar(c.after_start, f"{c.after_start:.1f} s") for c in cases]),
        Panel("CPU", [Bar(c.cpu, f"{c.cpu:.1f} s") for c in cases]),
        Panel("peak memory", [Bar(c.memory, f"{c.memory / 1e6:,.0f} MB") for c in cases]),
    ]
    names = [case.name for case in cases]
    return bar_chart("How a sync grows", names, panels, set(names))
