"""The lines of a raw file, gzipped or plain, in bounded memory, however broken the file is."""

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from isal import isal_zlib

CHUNK = 1 << 20
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP = 16 + zlib.MAX_WBITS


@dataclass(slots=True)
class RawLines:
    """Iterate to get (line number from 1, line); afterwards `broken` says what ended it early.

    A line over the limit comes out cut to one byte more than the limit, so that its reader can
    tell and nothing larger is ever held.
    """

    open: Callable[[], BinaryIO]
    limit: int
    lines: int = 0
    broken: str | None = None

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        rest = b""
        for chunk in self._chunks():
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole:
                self.lines += 1
                yield self.lines, line[: self.limit + 1]
            rest = rest[: self.limit + 1]
        if rest and not self.broken:
            self.lines += 1
            yield self.lines, rest

    def _chunks(self) -> Iterator[bytes]:
        with self.open() as stream:
            first = stream.read(CHUNK)
            if first[:2] == _GZIP_MAGIC:
                yield from self._inflated(first, stream)
                return
            while first:
                yield first
                first = stream.read(CHUNK)

    def _inflated(self, data: bytes, stream: BinaryIO) -> Iterator[bytes]:
        """Gzip members one after the other."""
        given = 0
        member = isal_zlib.decompressobj(wbits=_GZIP)
        try:
            while data:
                out = member.decompress(data)
                given += len(out)
                yield out
                data = (member.unused_data.lstrip(b"\0") if member.eof else b"") or stream.read(
                    CHUNK
                )
                if member.eof and data:
                    member = isal_zlib.decompressobj(wbits=_GZIP)
        except isal_zlib.error as error:  # type: ignore[misc]  # its stub says instance
            self.broken = f"the gzip data are damaged ({error})"
            yield from self._salvaged(given)
        else:
            if not member.eof:
                self.broken = "the file is cut off before its end"

    def _salvaged(self, given: int) -> Iterator[bytes]:
        """What can still be read after the first `given` bytes, up to the very byte that fails."""
        with self.open() as stream:
            member = zlib.decompressobj(_GZIP)
            step, data = CHUNK, stream.read(CHUNK)
            while data:
                before = member.copy()
                try:
                    out = member.decompress(data[:step])
                except zlib.error:
                    if step == 1:
                        return
                    # isal gives nothing of a chunk with a fault in it; zlib can be set back and
                    # fed byte by byte.
                    member, step = before, 1
                    continue
                yield out[max(0, given) :]
                given -= len(out)
                data = data[step:] or stream.read(CHUNK)
                if member.eof:
                    data = member.unused_data + data
                    member = zlib.decompressobj(_GZIP)
