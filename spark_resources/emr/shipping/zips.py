"""Zip files that come out the same, byte by byte, whenever and wherever they are made."""

import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO

_ALWAYS = (1980, 1, 1, 0, 0, 0)
# Half of what one level more saves costs as much time as all so far.
_LEVEL = 3


def write_zip(target: IO[bytes], files: Mapping[str, Path]) -> None:
    """The files by their names in the archive."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, _ALWAYS)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, files[name].read_bytes())


def files_below(folder: Path, skipped: Iterable[str] = ()) -> dict[str, Path]:
    """All files of a folder by their path from its parent, without what Python leaves behind."""
    leave_out = {"__pycache__", *skipped}
    return {
        str(path.relative_to(folder.parent)): path
        for path in folder.rglob("*")
        if path.is_file() and not leave_out & set(path.parts)
    }
