"""`python -m benchmarks.growth`: how time and memory of a sync grow."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from benchmarks.contestants import ROOT
from benchmarks.growth.figures import CaseRuns, growth_chart, growth_table
from benchmarks.growth.running import run_case
from benchmarks.growth.scenarios import Scenario, scenarios
from benchmarks.measure import Failed
from benchmarks.process_tree import adopt_orphans

_ALL = ",".join(scenarios(1_000))
_console = Console(width=None if sys.stdout.isatty() else 140)


def main(
    only: Annotated[str, typer.Option(help="Scenarios, by commas.")] = _ALL,
    events: Annotated[int, typer.Option(help="Events of a case, if it does not vary them.")] = (
        100_000
    ),
    repeat: Annotated[int, typer.Option(help="Rounds; the tables show medians.")] = 1,
    save: Annotated[Path | None, typer.Option(help="Put the plot here, too (.svg).")] = None,
    folder: Annotated[Path, typer.Option(help="For archives, lakes and results.")] = (
        ROOT / ".bench"
    ),
) -> None:
    """Measure syncs by the engine on growing archives; exit code 1 if a result is wrong."""
    known = scenarios(events)
    names = only.split(",")
    if unknown := set(names) - known.keys():
        raise typer.BadParameter(f"{', '.join(unknown)}; there are {', '.join(known)}")
    adopt_orphans()
    folder = folder.absolute()
    done: list[CaseRuns] = []
    for name in names:
        try:
            cases = _run(known[name], folder, repeat)
        except Failed as failed:
            _console.print(str(failed), style="red", markup=False)
            raise typer.Exit(1) from None
        _console.print(growth_table(known[name], cases))
        done += cases
    _save(done, folder / "results", save)
    if not all(case.is_right for case in done):
        raise typer.Exit(1)


def _run(scenario: Scenario, folder: Path, rounds: int) -> list[CaseRuns]:
    """Round by round, so that all cases of a scenario see the same good and bad times."""
    cases: dict[str, CaseRuns] = {}
    for round in range(1, rounds + 1):
        for case in scenario.cases:
            with _console.status(f"{scenario.name}: {case.name}"):
                run, lines = run_case(case, folder, round)
            empty = CaseRuns(scenario.name, case.name, lines, [])
            cases.setdefault(case.name, empty).runs.append(run)
            for wrong in run.wrongs:
                _console.print(f"  {case.name}: {wrong}", style="red", markup=False)
    return list(cases.values())


def _save(cases: list[CaseRuns], results: Path, plot: Path | None) -> None:
    results.mkdir(parents=True, exist_ok=True)
    stamp = datetime.now(UTC).strftime("growth-%Y%m%dT%H%M%S")
    data = msgspec.json.format(msgspec.json.encode(cases))
    (results / f"{stamp}.json").write_bytes(data + b"\n")
    for path in [results / f"{stamp}.svg", *([plot] if plot else [])]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(growth_chart(cases), encoding="utf-8")
        _console.print(f"plot: {path}", soft_wrap=True)


if __name__ == "__main__":
    typer.run(main)
