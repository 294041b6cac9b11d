"""Zip files that come out the same, byte by byte, whenever and wherever they are made."""

import py_compile
import zipfile
from collections.abc import Iterable, Mapping
from importlib.util import cache_from_source
from pathlib import Path
from py_compile import PycInvalidationMode
from tempfile import TemporaryDirectory
from typing import IO

_ALWAYS = (1980, 1, 1, 0, 0, 0)
# Half of what one level more saves costs as much time as all so far.
_LEVEL = 3


def write_zip(target: IO[bytes], files: Mapping[str, Path], compiled: bool = False) -> None:
    """The files by their names in the archive; Python's also compiled, for this Python."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as archive:
        for name in sorted(files):
            archive.writestr(_entry(name), files[name].read_bytes())
            if compiled and name.endswith(".py") and (code := _compiled(name, files[name])):
                archive.writestr(_entry(cache_from_source(name)), code)


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _ALWAYS)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    return entry


def _compiled(name: str, source: Path) -> bytes | None:
    """Good whatever the time of the source is where it is unpacked."""
    with TemporaryDirectory() as folder:
        out = Path(folder) / "out.pyc"
        never = PycInvalidationMode.UNCHECKED_HASH
        if py_compile.compile(str(source), str(out), name, quiet=2, invalidation_mode=never):
            return out.read_bytes()
        return None  # some packages have files that no Python reads


def files_below(folder: Path, skipped: Iterable[str] = ()) -> dict[str, Path]:
    """All files of a folder by their path from its parent, without what Python leaves behind."""
    leave_out = {"__pycache__", *skipped}
    return {
        str(path.relative_to(folder.parent)): path
        for path in folder.rglob("*")
        if path.is_file() and not leave_out & set(path.parts)
    }
