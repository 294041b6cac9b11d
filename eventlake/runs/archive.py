"""The raw archive of a source: its files by day folder, and other objects beside them."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import date

from eventlake.aws.access import AwsAccess
from eventlake.clouds import Access
from eventlake.rules import paths
from eventlake.rules.errors import UsageError
from eventlake.rules.text import plural
from eventlake.settings.models import Source
from eventlake.settings.places import is_elsewhere
from eventlake.state.source_state import SourceState
from eventlake.storage import Storage, StoredFile, open_storage

_OTHER_FORMATS = (
    *(".ndjson", ".csv", ".tsv", ".parquet", ".avro", ".orc"),
    *(".zst", ".bz2", ".xz", ".lz4", ".zip", ".tgz", ".snappy"),
)
_LAYOUT = (
    "Raw files are newline-delimited JSON (.gz, .json or .jsonl) in folders named after their day: "
    "its UTC midnight in epoch milliseconds, so 1790812800000/x.json.gz for 2026-10-01"
)


@dataclass(frozen=True, slots=True)
class Ignored:
    """Objects below `raw` that syncs ignore, for one reason; `expected` ones contain no events."""

    reason: str
    files: int
    example: str
    expected: bool = False

    def __str__(self) -> str:
        return f"{plural(self.files, 'file')} {self.reason}, such as {self.example}"


@dataclass(frozen=True, slots=True)
class Archive:
    """The raw files of a source by day folder, and other objects below `raw`."""

    folders: dict[date, list[StoredFile]]
    others: tuple[Ignored, ...] = ()
    files: dict[str, StoredFile] = field(init=False)  # by path

    def __post_init__(self) -> None:
        by_path = {file.path: file for files in self.folders.values() for file in files}
        object.__setattr__(self, "files", by_path)

    def start(self, source: Source, state: SourceState) -> date | None:
        """The first day, from settings, state, or the oldest folder. Syncs ignore older ones."""
        if source.start is not None:
            return source.start
        if state.start is not None:
            return date.fromisoformat(state.start)
        return min(self.folders, default=None)

    def ignored(self, source: Source, state: SourceState) -> tuple[Ignored, ...]:
        """All objects that syncs ignore, the unexpected ones first."""
        start = self.start(source, state)
        early = [f for day, files in self.folders.items() if start and day < start for f in files]
        found = list(self.others)
        if early:
            reason = f"in day folders before the source's first day, {start}"
            found.append(Ignored(reason, len(early), early[0].path, source.start is not None))
        return tuple(sorted(found, key=lambda one: one.expected))


def archive_storage(storage: Storage, source: Source) -> Storage:
    """The storage of the raw files of a source: that of the lake, unless the archive is elsewhere.

    It is only read. Files of an archive elsewhere have full paths.
    """
    if not is_elsewhere(source.raw) and source.raw_role_arn is None:
        return storage
    access = Access.of(source)
    if source.raw_role_arn is not None:
        role = AwsAccess(source.region, source.raw_role_arn, source.raw_external_id)
        access = replace(access, aws=role)
    return open_storage(source.raw if is_elsewhere(source.raw) else storage.uri, access)


def list_archive(storage: Storage, source: Source) -> Archive:
    """List the archive; raises if its folder is missing or nothing in it is recognised."""
    raw, folder = archive_storage(storage, source), source.raw
    if is_elsewhere(folder):
        files = [replace(file, path=raw.full(file.path)) for file in raw.files("")]
        folder = ""
    else:
        files = raw.files(folder)
    if not files and not raw.exists(folder):
        raise UsageError(
            f"The raw archive of source {source.slug!r} is not there: "
            f"{raw.full(folder)} does not exist. "
            "Put the day folders there, or set `raw` of the source to where they lie."
        )
    folders: dict[date, list[StoredFile]] = {}
    others: dict[tuple[str, bool], list[str]] = {}
    for file in files:
        day = paths.folder_day(file.path.split("/")[-2])
        if day is not None and file.name.endswith(paths.RAW_SUFFIXES):
            folders.setdefault(day, []).append(file)
        else:
            others.setdefault(_why_not(file), []).append(file.path)
    ignored = tuple(
        Ignored(reason, len(found), found[0], expected)
        for (reason, expected), found in others.items()
    )
    if not folders:
        _refuse_unrecognised(source, raw.full(folder), ignored)
    return Archive(dict(sorted(folders.items())), ignored)


def _why_not(file: StoredFile) -> tuple[str, bool]:
    """Why a file is ignored, and whether that is expected."""
    if file.name.endswith(paths.RAW_SUFFIXES):
        return "not in a day folder", False
    if file.name.lower().endswith((*_OTHER_FORMATS, *paths.RAW_SUFFIXES)):
        return "in a format that is not read", False
    return "not named like a raw file", True


def _refuse_unrecognised(source: Source, place: str, ignored: Iterable[Ignored]) -> None:
    if unexpected := [one for one in ignored if not one.expected]:
        raise UsageError(
            f"Nothing in the raw archive of source {source.slug!r} is recognised: {place} holds "
            f"{'; '.join(map(str, unexpected))}. {_LAYOUT}. Set `raw` to the folder that holds "
            "the day folders, or bring the files into this layout."
        )
