"""Compiles kernel functions: once per user and machine, then from a cache.

The machine code is executed, so the cache is in a private folder, and each file is compared with
its checksum before use.
"""

import fcntl
import json
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from numba import config, njit
from numba.core.caching import UserProvidedCacheLocator

from eventlake.columnar.private_folder import CHECKSUMS, cache_folder

Function = TypeVar("Function", bound=Callable[..., Any])
_config: Any = config
_njit: Any = njit
_locator: Any = UserProvidedCacheLocator
_functions: list[Any] = []


class ByContent(_locator):  # type: ignore[misc]
    """Locates machine code by the content of the sources, independent of path and time.

    On a cluster, each run has the same sources in another folder.
    """

    def __init__(self, function: object, file: str) -> None:
        super().__init__(function, file)
        self._folder, self._room = _config.CACHE_DIR, Path(file).parent.name

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return "by content"

    def get_disambiguator(self) -> str:
        return f"{self._room}-{super().get_disambiguator()}"


def compiled(function: Function) -> Function:
    """Compile a function over addresses, arrays and numbers at its first call."""
    return _compiled(function)


def inlined(function: Function) -> Function:
    """The same for a small function, which is inlined into its callers."""
    return _compiled(function, forceinline=True)


def _compiled(function: Function, **options: bool) -> Function:
    """Numba chooses the cache location when a function is decorated, from two settings."""
    before = _config.CACHE_DIR, _config.CACHE_LOCATOR_CLASSES
    folder = cache_folder()
    try:
        if folder is not None:
            _config.CACHE_DIR = folder
            _config.CACHE_LOCATOR_CLASSES = f"{__name__}.{ByContent.__name__}"
        fast: Function = _njit(nogil=True, cache=folder is not None, **options)(function)
        _functions.append(fast)
        return fast
    finally:
        _config.CACHE_DIR, _config.CACHE_LOCATOR_CLASSES = before


@contextmanager
def checked_cache() -> Iterator[None]:
    """Delete damaged files of the cache; use it around the calls that load or compile all kernels.

    If something has to be compiled, one process at a time does it.
    """
    if (name := cache_folder()) is None:
        yield
        return
    folder = Path(name)
    with open(folder / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        listed, found = _listed(folder), _checksums(folder)
        for file, _ in found.items() - listed.items():
            (folder / file).unlink(missing_ok=True)
        if listed and listed.items() <= found.items():
            fcntl.flock(lock, fcntl.LOCK_UN)  # nothing to compile
        yield
        if (found := _checksums(folder)) != listed:
            draft = folder / f".{CHECKSUMS}.{os.getpid()}"
            draft.write_text(json.dumps(found))
            draft.replace(folder / CHECKSUMS)


def _checksums(folder: Path) -> dict[str, int]:
    return {file.name: zlib.crc32(file.read_bytes()) for file in sorted(folder.glob("*.nb[ci]"))}


def _listed(folder: Path) -> dict[str, int]:
    with suppress(OSError, ValueError):
        return dict(json.loads((folder / CHECKSUMS).read_bytes()))
    return {}


class Kernels(NamedTuple):
    """The origin of the machine code of this process."""

    cached: int = 0
    compiled: int = 0


def kernels() -> Kernels:
    """The number of kernels that this process loaded from the cache, and that it compiled."""
    stats = [function.stats for function in _functions]
    return Kernels(
        sum(sum(each.cache_hits.values()) for each in stats),
        sum(sum(each.cache_misses.values()) for each in stats),
    )
