"""Runs contestants one after the other, each in its own folder, and verifies every result."""

import atexit
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from uuid import uuid4

import msgspec

from benchmarks.archive import Archive
from benchmarks.contestants import Contestant
from benchmarks.measure import Measurement, measure
from benchmarks.verify import errors_in


class Run(msgspec.Struct, frozen=True):
    """One run of one contestant; the result is wrong if there are `errors`."""

    contestant: str
    round: int
    load: float  # average load of the machine in the minute before the run
    measured: Measurement
    files: int
    bytes: int
    errors: list[str]


def contest(
    archive: Archive, contestants: Sequence[Contestant], folder: Path, rounds: int
) -> Iterator[Run]:
    """Run all contestants in each round; the results of the last round stay in the folder."""
    for round in range(1, rounds + 1):
        for contestant in contestants:
            yield run(archive, contestant, folder / contestant.name, round)


def run(archive: Archive, contestant: Contestant, folder: Path, round: int = 1) -> Run:
    _set_aside(folder)
    folder.mkdir(parents=True)
    contestant.prepare(folder, archive)
    os.sync()  # do not measure writes of the previous run
    load = os.getloadavg()[0]
    command = contestant.command(archive.folder, folder)
    measured = measure(command, folder, contestant.environment(folder))
    tables = contestant.tables(folder)
    sizes = [file.stat().st_size for files in tables.values() for file in files]
    return Run(
        contestant=contestant.name,
        round=round,
        load=load,
        measured=measured,
        files=len(sizes),
        bytes=sum(sizes),
        errors=errors_in(tables, archive.truth, hours=contestant.has_hours),
    )


def _set_aside(folder: Path) -> None:
    """Rename the folder of an earlier run and remove it when this program ends: some file systems
    (ext4) create files slowly for minutes after many were removed."""
    if folder.exists():
        old = folder.with_name(f"{folder.name}-{uuid4().hex}")
        folder.rename(old)
        atexit.register(shutil.rmtree, old, ignore_errors=True)
