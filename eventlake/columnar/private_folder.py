"""Persistent folders of one user, for compiled kernels and unpacked code.

Code in such a folder is executed. With a predictable name in a shared folder, another user could
create it first, so a folder is used only if it is no link, owned by this user, and closed to
others. This module imports only the standard library: cluster nodes use it before packages are
available.
"""

import hashlib
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
    """The folder of this user; a temporary folder if no other can be used."""
    for folder in _candidates():
        if is_private(folder):
            return folder
    return Path(tempfile.mkdtemp(prefix="datalake-"))  # private and new


def _candidates() -> Iterator[Path]:
    if given := os.environ.get(VARIABLE):
        yield Path(given)
    if home := os.environ.get("XDG_CACHE_HOME"):
        yield Path(home) / "eventlake"
    if home := os.environ.get("HOME"):
        yield Path(home) / ".cache" / "eventlake"
    # Systems clean `/tmp` sooner than `/var/tmp`, and may keep it in memory.
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


CHECKSUMS = "checksums.json"
"""The file of a cache of kernels that lists its files; written once all are compiled."""


@cache
def cache_folder() -> str | None:
    """The cache folder of this version of the kernels; None if no folder is writable.

    Numba checks only the file of a function, not the files of the functions it calls. A folder per
    version keeps new kernels apart from the compiled code of old ones.
    """
    try:
        files = sorted(Path(__file__).parent.glob("**/*.py"))
        sources = b"\0".join(path.read_bytes() for path in files)
    except OSError:
        return None
    if not sources:  # shipped without them, or within an archive
        return None
    folder = private_folder() / f"kernel-{hashlib.sha256(sources).hexdigest()[:16]}"
    return str(folder) if is_private(folder) else None


def first_start() -> str | None:
    """What to tell a user who waits while kernels are compiled; None if they are in the cache."""
    folder = cache_folder()
    if folder is not None and Path(folder, CHECKSUMS).exists():
        return None
    kept = f"once for this version, and keeps the result in {folder}" if folder else "at each start"
    return f"Compiles its kernels, which takes up to a minute: {kept}"
