"""How far something is done with a source's manifests: a number that never goes back."""

import msgspec

from eventlake.storage import Storage
from eventlake.storage.documents import decode, encode


class Mark(msgspec.Struct, frozen=True):
    """The last manifest that it is done with."""

    manifest: int = 0


def read_mark(storage: Storage, path: str) -> int:
    data = storage.read(path)
    return 0 if data is None else decode(data, Mark, path).manifest


def raise_mark(storage: Storage, path: str, manifest: int) -> None:
    """Two who are at it at once leave the higher number."""

    def higher(data: bytes | None) -> bytes | None:
        known = 0 if data is None else decode(data, Mark, path).manifest
        return encode(Mark(manifest)) if manifest > known else None

    storage.update(path, higher)
