"""What must be in order before a run: found out without changing anything."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lake.errors import LakeError, UsageError
from lake.lake import Lake
from lake.settings import Settings, Source
from lake.state.source_state import read_state
from lake.work.layout import refuse_changed_layout
from lake.work.plan import list_archive
from spark_resources.java import require_java


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at: in order, worth a warning, or what a run would trip over."""

    what: str
    seen: str = ""
    error: LakeError | None = None
    warning: bool = False


def findings(lake: Lake, sources: Iterable[Source]) -> Iterator[Finding]:
    """Look at everything a run of these sources needs, in the order in which to mend it."""
    yield _storage(lake.settings)
    for source in sources:
        yield _archive(lake, source)
        yield _tables(lake, source)
    yield _catalog(lake)
    yield _java()


def require(found: Iterable[Finding]) -> None:
    """Raise what is wrong, all of it at once."""
    errors = [finding.error for finding in found if finding.error]
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise UsageError("\n".join([f"{len(errors)} things are in the way.", *map(str, errors)]))


def _storage(settings: Settings) -> Finding:
    folder = Path(settings.storage_uri)
    standing = next(place for place in (folder, *folder.parents) if place.exists())
    if not standing.is_dir():
        return _wrong("storage", f"{standing} is a file. Set `storage` to a folder.")
    if not os.access(standing, os.R_OK | os.W_OK | os.X_OK):
        return _wrong(
            "storage",
            f"{standing} cannot be read and written by this user. Give it the rights "
            f"(`chmod u+rwx`), or set `storage` to a folder of its own.",
        )
    return Finding("storage", str(folder))


def _archive(lake: Lake, source: Source) -> Finding:
    what = f"archive of {source.slug}"
    try:
        folders = list_archive(lake.storage, source).folders
    except LakeError as error:
        return Finding(what, error=error)
    except OSError as error:
        place = lake.storage.full(source.raw)
        return _wrong(what, f"{place} cannot be read: {error}. Give this user the right to.")
    files = [file for stored in folders.values() for file in stored]
    if not files:
        empty = f"{lake.storage.full(source.raw)} holds no raw files yet; there is nothing to sync"
        return Finding(what, empty, warning=True)
    total = sum(file.size for file in files) / 1e6
    return Finding(
        what,
        f"{len(files):,} files, {total:,.1f} MB, days {min(folders)} to {max(folders)}",
    )


def _tables(lake: Lake, source: Source) -> Finding:
    what = f"tables of {source.slug}"
    try:
        state = read_state(lake.storage, source.id)
        refuse_changed_layout(source, state)
    except LakeError as error:
        return Finding(what, error=error)
    known = len(state.tables_of(source))
    return Finding(what, f"{known} in database {source.database}" if known else "none yet")


def _catalog(lake: Lake) -> Finding:
    try:
        databases = lake.catalog.databases()
        tables = sum(len(lake.catalog.tables(database)) for database in databases)
    except LakeError as error:
        return Finding("catalog", error=error)
    kind = lake.settings.catalog
    return Finding("catalog", f"{kind}, {len(databases)} databases, {tables} tables")


def _java() -> Finding:
    try:
        return Finding("Java", f"version {require_java()}")
    except LakeError as error:
        return Finding("Java", error=error)


def _wrong(what: str, message: str) -> Finding:
    return Finding(what, error=UsageError(message))
