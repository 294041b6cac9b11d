"""One case: the lake as it was before, then the sync that is measured."""

from dataclasses import replace
from pathlib import Path

from benchmarks.archive import Archive, make_archive
from benchmarks.contest import Run, run
from benchmarks.contestants import ENGINE, engine_command, lake_folder
from benchmarks.growth.scenarios import Case
from benchmarks.measure import measure


def run_case(case: Case, folder: Path, round: int) -> tuple[Run, int]:
    """What it took, and how many lines the measured sync was given."""
    archives = folder / "archives"
    archive = make_archive(archives, case.recipe)
    if case.before is None:
        return run(archive, ENGINE, folder / "runs" / "growth", round), archive.truth.lines
    history = make_archive(archives, case.before)
    nothing_new = case.before == case.recipe

    def prepare(place: Path, new: Archive) -> None:
        lake_folder(place, history)
        talk = place / "history"
        talk.mkdir()
        # Measured though nobody asks, since that waits for all processes to end.
        measure(engine_command(history.folder, place), talk)
        new.link_into(place / "lake")

    truth = history.truth if nothing_new else history.truth.then(archive.truth)
    contestant = replace(ENGINE, prepare=prepare)
    done = run(replace(archive, truth=truth), contestant, folder / "runs" / "growth", round)
    return done, 0 if nothing_new else archive.truth.lines
