"""What a commit leaves without any use, apart from the folders that its partitions leave."""

from datetime import datetime

import msgspec

from eventlake.state.manifest import Manifest
from eventlake.state.source_state import SourceState


def with_unused(state: SourceState, manifest: Manifest, made: datetime) -> Manifest:
    """The manifest with its time, and with all that nothing leads to once it is committed."""
    moved = {change.location for change in manifest.partitions}
    gone = state_places(state) - state_places(state.after(manifest)) - moved
    return msgspec.structs.replace(manifest, made=made, unused=tuple(sorted(gone)))


def state_places(state: SourceState) -> set[str]:
    """Where the state itself leads to: index files, and folders of shadows."""
    files = {file.path for files in state.index.values() for file in files}
    return files | {s.location for shadows in state.shadows.values() for s in shadows.values()}
