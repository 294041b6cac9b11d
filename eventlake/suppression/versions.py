"""The versions of the lists: the next is made only if nobody else has just made it."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise

from eventlake.rules import paths
from eventlake.storage import Storage, StoredFile
from eventlake.suppression.entries import Entries

KEPT = timedelta(days=30)
"""For which a version that was followed by another stays: longer than a run that may use it."""

_NAME = re.compile(r"\d{10}\.parquet")


@dataclass(frozen=True, slots=True)
class Version:
    """The lists after so many changes; 0 is that of a lake in which nobody ever made one."""

    number: int = 0
    entries: Entries = field(default_factory=Entries)

    @property
    def path(self) -> str:
        return paths.suppression_list(self.number)


def newest_path(storage: Storage) -> str | None:
    """Where the lists that count now are, if there are any."""
    files = _files(storage)
    return files[-1].path if files else None


def newest(storage: Storage) -> Version:
    """The lists that count now."""
    path = newest_path(storage)
    return Version() if path is None else Version(_number(path), read_entries(storage, path))


def read_entries(storage: Storage, path: str) -> Entries:
    data = storage.read(path)
    if data is None:
        raise FileNotFoundError(f"{path}, by which this run suppresses people, is gone")
    return Entries.decode(data, path)


def change(
    storage: Storage, edit: Callable[[Entries], Entries], now: datetime
) -> tuple[Version, Version]:
    """Change the lists, on top of whatever others change meanwhile: how they were and are."""
    while True:
        before = newest(storage)
        after = Version(before.number + 1, edit(before.entries))
        if after.entries.table.equals(before.entries.table):
            return before, before
        if storage.create(after.path, after.entries.encode()):
            _forget(storage, now)
            return before, after


def _forget(storage: Storage, now: datetime) -> None:
    """Remove versions that were followed by another long ago."""
    oldest = int((now - KEPT).timestamp()) * 1_000_000_000
    files = _files(storage)
    for file, successor in pairwise(files):
        if successor.modified_ns < oldest:
            storage.delete(file.path)


def _files(storage: Storage) -> list[StoredFile]:
    return [file for file in storage.files(paths.suppression()) if _NAME.fullmatch(file.name)]


def _number(path: str) -> int:
    return int(path.rsplit("/", 1)[-1].removesuffix(".parquet"))
