"""What must be in order before a run: found out without changing anything."""

import os
from collections.abc import Callable, Iterable, Iterator
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
    yield _looked("Java", lambda: f"version {require_java()}")


def require(found: Iterable[Finding]) -> None:
    """Raise what is wrong, all of it at once."""
    errors = [finding.error for finding in found if finding.error]
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise UsageError("\n".join([f"{len(errors)} things are in the way.", *map(str, errors)]))


def _storage(settings: Settings) -> Finding:
    def look() -> str:
        folder = Path(settings.storage_uri)
        standing = next(place for place in (folder, *folder.parents) if place.exists())
        if not standing.is_dir():
            raise UsageError(f"{standing} is a file. Set `storage` to a folder.")
        if not os.access(standing, os.R_OK | os.W_OK | os.X_OK):
            raise UsageError(
                f"{standing} cannot be read and written by this user. Give it the rights (`chmod "
                "u+rwx`), or set `storage` to another folder."
            )
        return str(folder)

    return _looked("storage", look)


def _archive(lake: Lake, source: Source) -> Finding:
    def look() -> str:
        folders = list_archive(lake.storage, source).folders
        files = [file for stored in folders.values() for file in stored]
        if not files:
            raise _Nothing(f"{lake.storage.full(source.raw)} holds no raw files yet")
        total = sum(file.size for file in files) / 1e6
        return f"{len(files):,} files, {total:,.1f} MB, days {min(folders)} to {max(folders)}"

    return _looked(f"archive of {source.slug}", look)


def _tables(lake: Lake, source: Source) -> Finding:
    def look() -> str:
        state = read_state(lake.storage, source.id)
        refuse_changed_layout(source, state)
        known = len(state.tables_of(source))
        return f"{known} in database {source.database}" if known else "none yet"

    return _looked(f"tables of {source.slug}", look)


def _catalog(lake: Lake) -> Finding:
    def look() -> str:
        databases = lake.catalog.databases()
        tables = sum(len(lake.catalog.tables(database)) for database in databases)
        return f"{lake.settings.catalog}, {len(databases)} databases, {tables} tables"

    return _looked("catalog", look)


class _Nothing(Exception):
    """There is nothing to look at, which is no error."""


def _looked(what: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(what, look())
    except _Nothing as nothing:
        return Finding(what, str(nothing), warning=True)
    except LakeError as error:
        return Finding(what, error=error)
    except OSError as error:
        told = f"{error}. Give this user the right to read it, or correct the settings."
        return Finding(what, error=UsageError(told))
