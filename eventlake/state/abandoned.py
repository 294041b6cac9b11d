"""Runs that may have left files behind which nothing leads to: noted now, cleaned up later."""

from datetime import datetime

import msgspec

from eventlake.report import RunFacts
from eventlake.rules import paths
from eventlake.rules.clock import now
from eventlake.storage import Storage
from eventlake.storage.documents import decode, encode


class Abandoned(msgspec.Struct, frozen=True):
    """A run that failed or lost a race for a commit, and when."""

    run_id: str
    since: datetime


def note_abandoned(storage: Storage, run: RunFacts) -> None:
    """To be done before the run is over, so that nobody forgets it; may be repeated."""
    found = Abandoned(run.run_id, now())
    storage.write(_path(run.source_id, run.run_id), encode(found))


def abandoned_runs(storage: Storage, source_id: str, before: datetime) -> list[Abandoned]:
    """Those that were noted before a moment."""
    files = [file.path for file in storage.files(paths.abandoned(source_id))]
    read = zip(files, storage.read_many(files), strict=True)
    notes = [decode(data, Abandoned, path) for path, data in read if data is not None]
    return [note for note in notes if note.since < before]


def forget_abandoned(storage: Storage, source_id: str, run_id: str) -> None:
    storage.delete(_path(source_id, run_id))


def _path(source_id: str, run_id: str) -> str:
    return f"{paths.abandoned(source_id)}/{run_id}.json"
