"""Runs of contestants on an archive, each in a folder and processes of its own, each checked."""

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
from benchmarks.verify import wrongs


class Run(msgspec.Struct, frozen=True):
    """One run of one contestant, with what it left behind; wrong if `wrongs` says anything."""

    contestant: str
    round: int
    load: float  # of the machine when it began: running programs, on average of a minute
    measured: Measurement
    files: int
    bytes: int
    wrongs: list[str]


def contest(
    archive: Archive, contestants: Sequence[Contestant], folder: Path, rounds: int
) -> Iterator[Run]:
    """One after the other, round by round; what the last round made stays in the folder."""
    for round in range(1, rounds + 1):
        for contestant in contestants:
            yield run(archive, contestant, folder / contestant.name, round)


def run(archive: Archive, contestant: Contestant, folder: Path, round: int = 1) -> Run:
    _make_way(folder)
    folder.mkdir(parents=True)
    contestant.prepare(folder, archive)
    os.sync()  # so that nobody pays for what the one before has written
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
        wrongs=wrongs(tables, archive.truth, hours=contestant.has_hours),
    )


def _make_way(folder: Path) -> None:
    """Have what an earlier run left out of the way, and removed when all runs are over: for some
    minutes after many files are removed, some file systems (ext4) take long to make new ones."""
    if folder.exists():
        old = folder.with_name(f"{folder.name}-{uuid4().hex}")
        folder.rename(old)
        atexit.register(shutil.rmtree, old, ignore_errors=True)
