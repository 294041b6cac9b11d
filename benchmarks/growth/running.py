"""One case: the lake as it was before, then the sync that is measured."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

from benchmarks.archive import Archive, make_archive
from benchmarks.contest import Run, run
from benchmarks.contestants import ENGINE, engine_command, lake_folder
from benchmarks.growth.scenarios import Case


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
        with (place / "history.log").open("wb") as log:
            command = engine_command(history.folder, place)
            subprocess.run(command, check=True, stdout=log, stderr=log, env=os.environ)
        new.link_into(place / "lake")

    truth = history.truth if nothing_new else history.truth.then(archive.truth)
    contestant = replace(ENGINE, prepare=prepare)
    done = run(replace(archive, truth=truth), contestant, folder / "runs" / "growth", round)
    return done, 0 if nothing_new else archive.truth.lines
