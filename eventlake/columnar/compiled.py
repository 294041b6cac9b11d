"""Compiles kernel functions: once per machine, then from a cache."""

import hashlib
import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from numba import config, njit

Function = TypeVar("Function", bound=Callable[..., Any])
_HERE = Path(__file__).parent
_SOURCES = "**/*.py"
_config: Any = config
_njit: Any = njit


def compiled(function: Function) -> Function:
    """A function over addresses, arrays and numbers as machine code, made at its first call."""
    return _compiled(function)


def inlined(function: Function) -> Function:
    """The same for a small one, which becomes part of those that call it."""
    return _compiled(function, forceinline=True)


def _compiled(function: Function, **options: bool) -> Function:
    """Numba chooses where to keep a function's code when it is decorated, and by this setting."""
    before = _config.CACHE_DIR
    folder = cache_folder()
    try:
        _config.CACHE_DIR = folder or before
        fast: Function = _njit(nogil=True, cache=folder is not None, **options)(function)
        return fast
    finally:
        _config.CACHE_DIR = before


@cache
def cache_folder() -> str | None:
    """The cache folder of this version of the kernels; None if no folder is writable.

    Numba looks only at the file of a function, not at those of the functions it calls, so that a
    new kernel could meet the code of an old one: hence a folder for each.
    """
    try:
        files = sorted(_HERE.glob(_SOURCES))
        sources = b"\0".join(path.read_bytes() for path in files)
    except OSError:
        return None
    if not sources:  # shipped without them, or within an archive
        return None
    name = f"kernel-{hashlib.sha256(sources).hexdigest()[:16]}"
    for parent in (_HERE / "__pycache__", Path(tempfile.gettempdir()) / f"datalake-{os.getuid()}"):
        try:
            (parent / name).mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        # Where all may write, nobody else's code is run.
        if os.access(parent / name, os.W_OK) and parent.stat().st_uid == os.getuid():
            return str(parent / name)
    return None
