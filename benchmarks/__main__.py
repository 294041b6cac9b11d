"""`python -m benchmarks`: ours and the peers on one archive."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from benchmarks.archive import make_archive
from benchmarks.bars import Bar, Panel, bar_chart
from benchmarks.contest import Run, contest
from benchmarks.contestants import CONTESTANTS, ENGINE, ROOT
from benchmarks.floor import Floor, measure_floor
from benchmarks.measure import Failed
from benchmarks.process_tree import adopt_orphans
from benchmarks.recipe import Recipe
from benchmarks.summary import METRICS, contestants_of, middle, ratio_table

BENCH = ROOT / ".bench"
OURS = ("engine", "command")
_console = Console(width=None if sys.stdout.isatty() else 180)


class Outcome(msgspec.Struct, frozen=True):
    """All that is kept of a benchmark."""

    recipe: Recipe
    lines: int
    runs: list[Run]
    floor: Floor | None


def main(
    events: Annotated[int, typer.Option(help="Events; copies come on top.")] = 1_000_000,
    tables: Annotated[int, typer.Option(help="Event types.")] = 60,
    hours: Annotated[int, typer.Option(help="Hours of the day in which events come in.")] = 24,
    files: Annotated[int, typer.Option(help="Raw files.")] = 24,
    duplicates: Annotated[float, typer.Option(help="The share of events sent twice.")] = 0.01,
    peers: Annotated[
        str, typer.Option(help="Who takes part beside the engine, by commas; '' for nobody.")
    ] = "command,duckdb,dlt,pyspark",
    repeat: Annotated[int, typer.Option(help="Rounds; the table shows medians.")] = 1,
    floor: Annotated[bool, typer.Option(help="Also gunzip, parse and write alone.")] = True,
    save: Annotated[Path | None, typer.Option(help="Put the plot here, too (.svg).")] = None,
    folder: Annotated[Path, typer.Option(help="For archives, lakes and results.")] = BENCH,
) -> None:
    """Run ours and the peers on the same archive, check what they made, and compare.

    Exit code 1 if anyone's result is wrong.
    """
    names = [ENGINE.name, *(name for name in peers.split(",") if name and name != ENGINE.name)]
    if unknown := set(names) - CONTESTANTS.keys():
        raise typer.BadParameter(f"{', '.join(unknown)}; there are {', '.join(CONTESTANTS)}")
    adopt_orphans()
    folder = folder.absolute()
    recipe = Recipe(events=events, tables=tables, hours=hours, files=files, duplicates=duplicates)
    with _console.status("making the archive"):
        archive = make_archive(folder / "archives", recipe)
    truth = archive.truth
    _console.print(
        f"{truth.lines:,} lines of {truth.bytes / truth.lines:,.0f} bytes in {len(archive.files)} "
        f"files ({archive.size / 1e6:,.0f} MB), {len(truth.tables)} tables, "
        f"{len(truth.slots):,} hours of tables, {truth.duplicates / truth.lines:.1%} duplicates"
    )
    runs: list[Run] = []
    try:
        chosen = [CONTESTANTS[name] for name in names]
        for run in contest(archive, chosen, folder / "runs", repeat):
            runs.append(run)
            _tell(run)
    except Failed as failed:
        _console.print(str(failed), style="red", markup=False)
        raise typer.Exit(1) from None
    _console.print(ratio_table(runs, truth.lines, ENGINE.name))
    lowest = measure_floor(archive.folder, folder / "runs" / ENGINE.name) if floor else None
    if lowest:
        _console.print(lowest.told(runs))
    _save(Outcome(recipe, truth.lines, runs, lowest), folder / "results", save)
    if any(run.wrongs for run in runs):
        raise typer.Exit(1)


def _tell(run: Run) -> None:
    measured = run.measured
    _console.print(
        f"{run.contestant} (round {run.round}): {measured.wall:.1f} s, CPU {measured.cpu:.1f} s, "
        f"{measured.peak_memory / 1e6:,.0f} MB, load {run.load:.1f}"
    )
    for wrong in run.wrongs:
        _console.print(f"  {wrong}", style="red", markup=False)


def _save(outcome: Outcome, results: Path, plot: Path | None) -> None:
    results.mkdir(parents=True, exist_ok=True)
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    data = msgspec.json.format(msgspec.json.encode(outcome))
    (results / f"{stamp}.json").write_bytes(data + b"\n")
    for path in [results / f"{stamp}.svg", *([plot] if plot else [])]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_chart(outcome), encoding="utf-8")
        _console.print(f"plot: {path}", soft_wrap=True)


def _chart(outcome: Outcome) -> str:
    names = contestants_of(outcome.runs)
    panels = []
    for metric in METRICS:
        values = [middle(outcome.runs, name, metric, outcome.lines) for name in names]
        bars = [None if v is None else Bar(v, metric.shown(v)) for v in values]
        panels.append(Panel(metric.title, bars))
    title = f"{outcome.lines:,} events, {outcome.recipe.tables} tables"
    return bar_chart(title, names, panels, set(OURS))


if __name__ == "__main__":
    typer.run(main)
