"""State as JSON files with a format version."""

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import msgspec

from eventlake.rules.errors import StateError
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


def decode(data: bytes, kind: type[T], path: str) -> T:
    """Decode a state object; raise `StateError` for a newer format or a damaged file."""
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
        raise StateError(
            f"{path} cannot be read as {kind.__name__}: {error}. It was damaged or edited; "
            "restore the file from a backup."
        ) from None


def read_all(storage: Storage, folder: str, kind: type[T]) -> list[T]:
    """The state objects in a folder; files that are deleted in the meantime are left out."""
    return list(read_each(storage, [file.path for file in storage.files(folder)], kind))


def read_each(storage: Storage, files: Sequence[str], kind: type[T]) -> Iterator[T]:
    """The state objects in some files; missing files are left out."""
    read = zip(files, storage.read_many(files), strict=True)
    return (decode(data, kind, path) for path, data in read if data is not None)


class _Versioned(msgspec.Struct):
    format_version: int
