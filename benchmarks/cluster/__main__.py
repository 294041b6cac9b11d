"""`python -m benchmarks.cluster`: one worker with one core, then two."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.archive import Archive, make_archive
from benchmarks.contest import Run, run
from benchmarks.contestants import ENGINE, ROOT, Contestant
from benchmarks.growth.figures import CaseRuns, growth_table
from benchmarks.growth.scenarios import Scenario
from benchmarks.measure import Failed
from benchmarks.process_tree import adopt_orphans
from benchmarks.recipe import Recipe

_console = Console(width=None if sys.stdout.isatty() else 140)


def main(
    events: Annotated[int, typer.Option(help="Events; copies come on top.")] = 300_000,
    most: Annotated[int, typer.Option(help="Workers, of one core each, in the end.")] = 2,
    repeat: Annotated[int, typer.Option(help="Rounds; the table shows medians.")] = 1,
    folder: Annotated[Path, typer.Option(help="For archives and lakes.")] = ROOT / ".bench",
) -> None:
    """Measure the same sync on clusters of this machine; exit code 1 if a result is wrong.

    A core for each worker, and one for the driver, is what the figures mean something with.
    """
    adopt_orphans()
    folder = folder.absolute()
    archive = make_archive(folder / "archives", Recipe(events=events))
    lines = archive.truth.lines
    counts = range(1, most + 1)
    cases = [CaseRuns("workers", _name(count), lines, []) for count in counts]
    for round in range(1, repeat + 1):
        for count, case in zip(counts, cases, strict=True):
            with _console.status(f"{case.case}, round {round}"):
                place = folder / "runs" / "cluster"
                case.runs.append(_run(archive, on_workers(count), place, round))
    says = f"a sync of {lines:,} lines by workers of one core each"
    _console.print(growth_table(Scenario("workers", says, []), cases))
    if not all(case.is_right for case in cases):
        raise typer.Exit(1)


def on_workers(count: int) -> Contestant:
    """A sync on a cluster that is started for it, and ends with it."""

    def command(archive: Path, folder: Path) -> list[str]:
        told = [str(folder / "lake.yaml"), str(count)]
        return [sys.executable, "-m", "benchmarks.ours.cluster", *told]

    return replace(ENGINE, name=_name(count), command=command)


def _run(archive: Archive, contestant: Contestant, place: Path, round: int) -> Run:
    try:
        return run(archive, contestant, place, round)
    except Failed as failed:
        _console.print(str(failed), style="red", markup=False)
        raise typer.Exit(1) from None


def _name(count: int) -> str:
    return "1 worker" if count == 1 else f"{count} workers"


if __name__ == "__main__":
    typer.run(main)
