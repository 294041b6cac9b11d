"""Up to which number manifests may be gone: who comes back after months commits none of these."""

from eventlake.rules import paths
from eventlake.state.marks import raise_mark, read_mark
from eventlake.storage import Storage


def read_pruned(storage: Storage, source_id: str) -> int:
    """No manifest of this number, or of one before it, can be committed any more."""
    return read_mark(storage, paths.pruned(source_id))


def note_pruned(storage: Storage, source_id: str, manifest: int) -> None:
    """To be done before the first of them goes."""
    raise_mark(storage, paths.pruned(source_id), manifest)
