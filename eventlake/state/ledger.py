"""The ledger: the raw files that the syncs of a source have loaded, by day folder."""

from collections.abc import Callable
from functools import partial

import msgspec

from eventlake.rules import paths
from eventlake.rules.errors import DamagedFile
from eventlake.storage import Storage, StoredFile
from eventlake.storage.documents import decode, decode_note, encode


class LedgerEntry(msgspec.Struct, frozen=True):
    """A raw file as it was when it was loaded."""

    path: str
    size: int
    stamp: str
    lines: int
    hours: tuple[str, ...]
    broken: str | None = None
    checksum: str | None = None  # none for files loaded by an earlier release
    other: str | None = None  # the stamp of other bytes that were found in its place

    def matches(self, file: StoredFile) -> bool:
        """Whether this is the file, by size and stamp."""
        return (self.size, self.stamp) == (file.size, file.stamp) or self.may_be_copy(file)

    def may_be_copy(self, file: StoredFile) -> bool:
        """Whether it may have the same bytes with another time, as in a copied archive."""
        of_size = self.checksum is not None and self.size == file.size
        return of_size and file.stamp not in (self.stamp, self.other)


class LedgerPage(msgspec.Struct, frozen=True):
    """The loaded files of one day folder."""

    files: dict[str, LedgerEntry] = {}


def read_ledger(
    storage: Storage,
    source_id: str,
    folders: list[str],
    damaged: Callable[[DamagedFile], None] | None = None,
) -> dict[str, LedgerEntry]:
    """All loaded files of some day folders, by path; `damaged` is called with pages left out."""
    pages = [paths.ledger(source_id, folder) for folder in folders]
    known: dict[str, LedgerEntry] = {}
    for path, data in zip(pages, storage.read_many(pages), strict=True):
        try:
            known |= decode(data, LedgerPage, path).files if data is not None else {}
        except DamagedFile as error:
            if damaged is None:
                raise
            damaged(error)
    return known


def read_whole_ledger(storage: Storage, source_id: str) -> dict[str, LedgerEntry]:
    """All loaded files, including those of removed folders."""
    pages = storage.files(paths.ledger_pages(source_id))
    return read_ledger(storage, source_id, [page.name.removesuffix(".json") for page in pages])


def add_to_ledger(storage: Storage, source_id: str, entries: tuple[LedgerEntry, ...]) -> None:
    """Write entries into the pages of their folders; may be repeated."""
    by_folder: dict[str, dict[str, LedgerEntry]] = {}
    for entry in entries:
        by_folder.setdefault(entry.path.split("/")[-2], {})[entry.path] = entry
    for folder, added in by_folder.items():
        page = paths.ledger(source_id, folder)
        storage.update(page, partial(_with_entries, page, added))


def _with_entries(page: str, added: dict[str, LedgerEntry], data: bytes | None) -> bytes | None:
    known = (decode_note(data, LedgerPage, page) or LedgerPage()).files
    return None if known | added == known else encode(LedgerPage(known | added))
