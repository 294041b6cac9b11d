"""Up to which number manifests may be gone: who comes back after months commits none of these."""

import msgspec

from lake import paths
from lake.state.codec import decode, encode
from lake.storage import Storage


class Pruned(msgspec.Struct, frozen=True):
    """No manifest of this number, or of one before it, can be committed any more."""

    manifest: int = 0


def read_pruned(storage: Storage, source_id: str) -> int:
    path = paths.pruned(source_id)
    data = storage.read(path)
    return 0 if data is None else decode(data, Pruned, path).manifest


def note_pruned(storage: Storage, source_id: str, manifest: int) -> None:
    """To be done before the first of them goes; never goes back."""
    path = paths.pruned(source_id)

    def further(data: bytes | None) -> bytes | None:
        known = Pruned() if data is None else decode(data, Pruned, path)
        return encode(Pruned(manifest)) if manifest > known.manifest else None

    storage.update(path, further)
