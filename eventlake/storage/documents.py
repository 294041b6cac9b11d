"""State as JSON files with a format version."""

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import msgspec

from eventlake.rules.errors import DamagedFile, StateError
from eventlake.storage.base import Storage

FORMAT_VERSION = 3
"""3: pages have the partitions of every lake, with their files; version 2 would leave these behind.
2: days may be missing from the id index; version 1 would treat them as days without events."""

_BEGINNING = b'{"format_version":%d,' % FORMAT_VERSION

T = TypeVar("T", bound=msgspec.Struct)


def encode(value: msgspec.Struct) -> bytes:
    """Encode a state object, format version first."""
    return msgspec.json.encode({"format_version": FORMAT_VERSION, **_fields(value)})


def _fields(value: msgspec.Struct) -> dict[str, Any]:
    names = zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True)
    return {key: getattr(value, name) for key, name in names}


_REMEDIES = {
    "segment-data/_state/catalog/": "`datalake recover --catalog` makes it again.",
    "/ledger/": (
        "`datalake sync` reads its raw files again and recognises their rows; if they are gone, "
        "remove it."
    ),
    "/state.json": (
        "Restore the file from a backup, or make the state again from the data files: "
        "`datalake recover --from-data`."
    ),
}
"""What to do about a damaged file, by a part of its path."""


def decode(data: bytes, kind: type[T], path: str) -> T:
    """Decode a state object; raise `StateError` for a newer format, `DamagedFile` for a damaged
    file."""
    try:
        # Current files start with the version: large ones need no extra pass.
        known = data.startswith(_BEGINNING)
        version = 0 if known else msgspec.json.decode(data, type=_Versioned).format_version
        if version > FORMAT_VERSION:
            raise StateError(
                f"{path} has format version {version}; this release knows up to {FORMAT_VERSION}. "
                "A newer release of datalake has worked on this lake: upgrade this one."
            )
        return msgspec.json.decode(data, type=kind)
    except msgspec.MsgspecError as error:
        remedies = [remedy for part, remedy in _REMEDIES.items() if part in path]
        raise DamagedFile(
            f"{path} cannot be read as {kind.__name__}: {error}. It was damaged or edited. "
            f"{[*remedies, 'Restore the file from a backup.'][0]}"
        ) from None


def decode_note(data: bytes | None, kind: type[T], path: str) -> T | None:
    """Decode what the lake can do without; None if it is missing or damaged."""
    try:
        return None if data is None else decode(data, kind, path)
    except DamagedFile:
        return None


def read_notes(storage: Storage, folder: str, kind: type[T]) -> dict[str, T | None]:
    """What the lake can do without, by name; None for damaged files."""
    files = storage.files(folder)
    data = storage.read_many([file.path for file in files])
    return {
        file.name.removesuffix(".json"): decode_note(one, kind, file.path)
        for file, one in zip(files, data, strict=True)
        if one is not None
    }


def read_each(storage: Storage, files: Sequence[str], kind: type[T]) -> Iterator[T]:
    """The state objects in some files; missing files are left out."""
    read = zip(files, storage.read_many(files), strict=True)
    return (decode(data, kind, path) for path, data in read if data is not None)


class _Versioned(msgspec.Struct):
    format_version: int
