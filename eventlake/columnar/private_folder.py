"""Folders that belong to one user and last: for compiled kernels and unpacked code.

Code that a process finds there is executed. A predictable name in a shared folder would let another
user create it first, so a folder is used only if it is real (no link), owned by this user, and
closed to others. Only the standard library is imported: cluster nodes use it before they have
anything else.
"""

import os
import stat
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

VARIABLE = "DATALAKE_CACHE"
"""Names the folder to use; the default is `eventlake` in the user's cache folder."""


@cache
def private_folder() -> Path:
    """The folder of this user; one that is lost with the machine's temporary files, if need be."""
    for folder in _candidates():
        if is_private(folder):
            return folder
    return Path(tempfile.mkdtemp(prefix="datalake-"))  # private, and new to everyone


def _candidates() -> Iterator[Path]:
    if given := os.environ.get(VARIABLE):
        yield Path(given)
    if home := os.environ.get("XDG_CACHE_HOME"):
        yield Path(home) / "eventlake"
    if home := os.environ.get("HOME"):
        yield Path(home) / ".cache" / "eventlake"
    # The system cleans `/tmp` sooner than `/var/tmp`, and may keep it in memory.
    for shared in ("/var/tmp", tempfile.gettempdir()):
        yield Path(shared) / f"datalake-{os.getuid()}"


def is_private(folder: Path) -> bool:
    """Create the folder if it is missing; False if another user can change what is in it."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return False
    closed = stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o022
    return closed and found.st_uid == os.getuid() and os.access(folder, os.W_OK)
