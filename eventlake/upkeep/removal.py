"""Removing files for good: counted, and never anything that is still needed."""

from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from eventlake.storage import Storage, StoredFile

THREADS = 16


@dataclass(frozen=True, slots=True)
class Removed:
    """How much is gone."""

    files: int = 0
    bytes: int = 0

    def __bool__(self) -> bool:
        return bool(self.files)

    def __add__(self, other: "Removed") -> "Removed":
        return Removed(self.files + other.files, self.bytes + other.bytes)


def remove_places(storage: Storage, places: Iterable[str], needed: Collection[str]) -> Removed:
    """Remove files and folders, but for those that are needed or lie around one that is."""
    gone = unneeded(places, needed)
    with ThreadPoolExecutor(THREADS) as pool:
        return sum(pool.map(lambda place: _remove(storage, place), gone), Removed())


def unneeded(places: Iterable[str], needed: Collection[str]) -> list[str]:
    """The places that may go: they are not needed, and there is nothing below them that is."""
    around = {folder for place in needed for folder in _and_parents(place)}
    return [place for place in places if place not in around]


def _remove(storage: Storage, place: str) -> Removed:
    """A folder with all below it; a path with an ending is a file."""
    if place.endswith(".arrow"):
        had = storage.files(place.rpartition("/")[0], recursive=False)
        storage.delete(place)
        return counted(file for file in had if file.path == place)
    had = storage.files(place)
    storage.delete_folder(place)
    return counted(had)


def counted(files: Iterable[StoredFile]) -> Removed:
    """How much these are."""
    return sum((Removed(1, file.size) for file in files), Removed())


def _and_parents(place: str) -> Iterable[str]:
    while place:
        yield place
        place = place.rpartition("/")[0]
