"""Raw files on disk: gzipped lines, written as they are made."""

import filecmp
import os
import zlib
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

# Fast rather than small; the same level everywhere, since the bytes depend on it.
_LEVEL = 1
_GZIP = 16 + zlib.MAX_WBITS  # zlib's own gzip header carries no time and no name
_LINES_AT_ONCE = 512
_CLEAR_OF_LINE_ENDS = 250


def gzipped(lines: Iterable[bytes], *, tidy: bool = True) -> Iterator[bytes]:
    """The lines as the chunks of a gzip file.

    An untidy one is a chain of gzip members, and its last line has no end.
    """
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    lines = iter(lines)
    before = b""
    while batch := list(islice(lines, _LINES_AT_ONCE)):
        yield packer.compress(before + b"\n".join(batch))
        before = b"\n"
        if not tidy:
            yield packer.flush()
            packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    if tidy:
        yield packer.compress(before)
    yield packer.flush()


def cut_off(whole: bytes) -> tuple[bytes, int]:
    """A gzip file cut somewhere past its middle, and how many whole lines are left in it."""
    text = zlib.decompress(whole, _GZIP)
    for size in range(len(whole) // 2, len(whole)):
        left = zlib.decompressobj(_GZIP).decompress(whole[:size])
        # Decoders may differ in the last bytes they can give: stay away from the ends of lines.
        begun = len(left) - (left.rfind(b"\n") + 1)
        missing = text.find(b"\n", len(left)) - len(left)
        if min(begun, missing) >= _CLEAR_OF_LINE_ENDS:
            return whole[:size], left.count(b"\n")
    raise ValueError("no line is long enough to be cut in its middle; use longer lines")


def write_if_different(path: Path, chunks: Iterable[bytes]) -> int:
    """Put the file there whole; one with these bytes is not touched. Returns its size."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    with part.open("wb") as out:
        for chunk in chunks:
            out.write(chunk)
        size = out.tell()
    if path.exists() and filecmp.cmp(part, path, shallow=False):
        part.unlink()
    else:
        os.replace(part, path)
    return size
