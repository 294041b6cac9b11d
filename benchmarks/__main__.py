"""`python -m benchmarks COMMAND`: measure syncs and verify every result."""

import subprocess
import sys
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from benchmarks.archive import Archive, Recipe, make_archive
from benchmarks.contest import Run, contest, run
from benchmarks.contestants import (
    CONTESTANTS,
    ENGINE,
    PY_SPY,
    ROOT,
    Contestant,
    engine_command,
    engine_on_cluster,
    lake_folder,
)
from benchmarks.floor import Floor, measure_floor
from benchmarks.growth import CaseRuns, run_case, scenarios
from benchmarks.measure import Failed, adopt_orphans
from benchmarks.report import growth_chart, growth_table, peers_chart, peers_table

BENCH = ROOT / ".bench"
SCENARIOS = ",".join(scenarios(1_000))
app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)
_console = Console(width=None if sys.stdout.isatty() else 180)

Events = Annotated[int, typer.Option(help="Number of events, without duplicates.")]
Repeat = Annotated[int, typer.Option(min=1, help="Number of rounds; tables show the median.")]
Save = Annotated[Path | None, typer.Option(help="Also write the chart to this SVG file.")]
Folder = Annotated[Path, typer.Option(help="Folder for archives, lakes and results.")]


class Outcome(msgspec.Struct, frozen=True):
    """The results of `peers` as saved to a file."""

    recipe: Recipe
    lines: int
    runs: list[Run]
    floor: Floor | None


@app.callback()
def main() -> None:
    """Measure syncs and verify every result. The exit code is 1 if a result is wrong."""


@app.command()
def peers(
    events: Events = 1_000_000,
    tables: Annotated[int, typer.Option(help="Number of event types.")] = 60,
    hours: Annotated[int, typer.Option(help="Number of hours with events.")] = 24,
    files: Annotated[int, typer.Option(help="Number of raw files.")] = 24,
    duplicates: Annotated[float, typer.Option(help="Share of events sent twice.")] = 0.01,
    peers: Annotated[
        str, typer.Option(help="Contestants besides the engine, separated by commas; '' for none.")
    ] = "command,duckdb,dlt,pyspark",
    repeat: Repeat = 1,
    floor: Annotated[
        bool, typer.Option(help="Also measure only unpacking, parsing and writing.")
    ] = True,
    save: Save = None,
    folder: Folder = BENCH,
) -> None:
    """Compare the engine with other loaders on the same archive."""
    names = [ENGINE.name, *(name for name in peers.split(",") if name and name != ENGINE.name)]
    _check_names(names, CONTESTANTS)
    folder = _prepare(folder)
    recipe = Recipe(events=events, tables=tables, hours=hours, files=files, duplicates=duplicates)
    archive = _archive(folder, recipe)
    lines = archive.truth.lines
    runs: list[Run] = []
    for done in contest(archive, [CONTESTANTS[n] for n in names], folder / "runs", repeat):
        runs.append(done)
        _print_run(done.contestant, done)
    _console.print(peers_table(runs, lines))
    lowest = measure_floor(archive.folder, folder / "runs" / ENGINE.name) if floor else None
    if lowest:
        _console.print(lowest.summary(runs))
    chart = peers_chart(f"{lines:,} events, {tables} tables", runs, lines)
    _finish("", Outcome(recipe, lines, runs, lowest), runs, chart, folder, save)


@app.command()
def growth(
    only: Annotated[str, typer.Option(help="Scenarios, separated by commas.")] = SCENARIOS,
    events: Events = 100_000,
    repeat: Repeat = 1,
    save: Save = None,
    folder: Folder = BENCH,
) -> None:
    """Measure how the time and memory of a sync grow with the archive and the lake."""
    known = scenarios(events)
    names = only.split(",")
    _check_names(names, known)
    folder = _prepare(folder)
    done: list[CaseRuns] = []
    for name in names:
        cases = {case.name: partial(run_case, case, folder) for case in known[name].cases}
        done += _run_cases(name, f"{name}: {known[name].goal}", cases, repeat)
    _finish_cases("growth", "Growth of a sync", done, folder, save)


@app.command()
def cluster(
    events: Events = 300_000,
    workers: Annotated[int, typer.Option(min=1, help="Largest number of workers.")] = 2,
    repeat: Repeat = 1,
    save: Save = None,
    folder: Folder = BENCH,
) -> None:
    """Measure the same sync on local clusters with one worker, two workers, and so on.

    Each worker has one core. Use a machine with one core more than workers, for the driver.
    """
    folder = _prepare(folder)
    archive = _archive(folder, Recipe(events=events))
    lines = archive.truth.lines

    def run_on(contestant: Contestant, round: int) -> tuple[Run, int]:
        return run(archive, contestant, folder / "runs" / "cluster", round), lines

    clusters = map(engine_on_cluster, range(1, workers + 1))
    cases = {one.name: partial(run_on, one) for one in clusters}
    title = f"a sync of {lines:,} lines on workers with one core each"
    done = _run_cases("cluster", title, cases, repeat)
    _finish_cases("cluster", title, done, folder, save)


@app.command()
def flame(
    save: Annotated[Path, typer.Option(help="SVG file to write.")],
    events: Events = 250_000,
    folder: Folder = BENCH,
) -> None:
    """Record a flame graph of the engine's Python processes with py-spy."""
    if not PY_SPY.exists():
        raise Failed("py-spy is not installed: run `make .bench-venv/.done` first")
    archive = _archive(folder.absolute(), Recipe(events=events))
    with TemporaryDirectory(dir=folder) as lake:
        lake_folder(Path(lake), archive)
        record = ["record", "--subprocesses", "--native", "--rate", "50", "--format", "flamegraph"]
        command = engine_command(archive.folder, Path(lake))
        if subprocess.run([PY_SPY, *record, "--output", save, "--", *command]).returncode:
            raise Failed("py-spy could not record the sync")


def _check_names(names: Collection[str], known: Collection[str]) -> None:
    if unknown := sorted(set(names) - set(known)):
        raise typer.BadParameter(f"unknown: {', '.join(unknown)}; choose from {', '.join(known)}")


def _prepare(folder: Path) -> Path:
    adopt_orphans()
    return folder.absolute()


def _archive(folder: Path, recipe: Recipe) -> Archive:
    with _console.status("generating the archive"):
        archive = make_archive(folder / "archives", recipe)
    truth = archive.truth
    _console.print(
        f"{truth.lines:,} lines of {truth.bytes / truth.lines:,.0f} bytes in {len(archive.files)} "
        f"files ({archive.size / 1e6:,.0f} MB), {len(truth.tables)} tables, "
        f"{len(truth.slots):,} hourly partitions, {truth.duplicates / truth.lines:.1%} duplicates"
    )
    return archive


def _run_cases(
    scenario: str, title: str, cases: Mapping[str, Callable[[int], tuple[Run, int]]], rounds: int
) -> list[CaseRuns]:
    """Run all cases in each round, so that the load of the machine affects them alike."""
    done: dict[str, CaseRuns] = {}
    for round in range(1, rounds + 1):
        for name, run_once in cases.items():
            with _console.status(f"{scenario}: {name}, round {round}"):
                measured, lines = run_once(round)
            done.setdefault(name, CaseRuns(scenario, name, lines, [])).runs.append(measured)
            _print_run(name, measured)
    _console.print(growth_table(title, list(done.values())))
    return list(done.values())


def _print_run(name: str, run: Run) -> None:
    measured = run.measured
    _console.print(
        f"{name} (round {run.round}): {measured.wall:.1f} s, CPU {measured.cpu:.1f} s, "
        f"{measured.peak_memory / 1e6:,.0f} MB, load {run.load:.1f}"
    )
    for error in run.errors:
        _console.print(f"  {error}", style="red", markup=False)


def _finish_cases(
    name: str, title: str, cases: list[CaseRuns], folder: Path, save: Path | None
) -> None:
    runs = [run for case in cases for run in case.runs]
    _finish(f"{name}-", cases, runs, growth_chart(title, cases), folder, save)


def _finish(
    prefix: str, outcome: object, runs: list[Run], chart: str, folder: Path, save: Path | None
) -> None:
    """Save figures and chart; exit with 1 if a result is wrong."""
    results = folder / "results"
    results.mkdir(parents=True, exist_ok=True)
    stem = prefix + datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    data = msgspec.json.format(msgspec.json.encode(outcome))
    (results / f"{stem}.json").write_bytes(data + b"\n")
    for path in [results / f"{stem}.svg", *([save] if save else [])]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(chart, encoding="utf-8")
        _console.print(f"chart: {path}", soft_wrap=True)
    if any(run.errors for run in runs):
        raise typer.Exit(1)


if __name__ == "__main__":
    try:
        app()
    except Failed as failed:
        _console.print(str(failed), style="red", markup=False)
        sys.exit(1)
