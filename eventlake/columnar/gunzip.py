"""Gzip members in pieces of bounded size, and what can be saved of damaged ones."""

import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, BinaryIO

from isal import isal_zlib

MAGIC = b"\x1f\x8b"
PIECE = 1 << 20
"""Of data read and of data given at once: one megabyte may hold a gigabyte of zeros."""

_GZIP = 16 + zlib.MAX_WBITS


class BrokenGzip(Exception):
    """The data end too early or are damaged; the message says which."""


def gunzip(first: bytes, stream: BinaryIO, again: Callable[[], BinaryIO]) -> Iterator[bytes]:
    """All that can be read, up to the byte that fails; then raises `BrokenGzip`.

    `first` was read from the stream already; `again` opens another from the beginning.
    """
    given = 0
    try:
        for piece in _members(first, stream, lambda: isal_zlib.decompressobj(wbits=_GZIP)):
            given += len(piece)
            yield piece
    except isal_zlib.error as error:  # type: ignore[misc]  # its stub says instance
        # isal gives nothing of a piece with a fault in it; zlib, slower, can be set back.
        with again() as stream:
            for piece in _salvaged(stream):
                yield piece[max(0, given) :]
                given -= len(piece)
        raise BrokenGzip(f"the gzip data are damaged ({error})") from error


def _members(data: bytes, stream: BinaryIO, new_member: Callable[[], Any]) -> Iterator[bytes]:
    """Gzip members one after the other; zeros that pad them are left out."""
    while data:
        member = new_member()
        while not member.eof:
            piece: bytes = member.decompress(data, PIECE)
            yield piece
            data = member.unconsumed_tail
            if not piece and not data and not member.eof:
                data = stream.read(PIECE)
                if not data:
                    raise BrokenGzip("the file is cut off before its end")
        data = member.unused_data.lstrip(b"\0")
        while not data and (data := stream.read(PIECE)):
            data = data.lstrip(b"\0")


def _salvaged(stream: BinaryIO) -> Iterator[bytes]:
    """What lies before the fault."""
    with suppress(zlib.error):
        yield from _members(stream.read(PIECE), stream, _CarefulMember)


class _CarefulMember:
    """A gzip member that gives all before a fault, from ever fewer bytes at once, then fails."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(_GZIP)
        self._step = PIECE
        self.unconsumed_tail = b""

    def decompress(self, data: bytes, most: int) -> bytes:
        while True:
            before = self._zlib.copy()
            try:
                piece = self._zlib.decompress(data[: self._step], most)
            except zlib.error:
                if self._step == 1:
                    raise
                self._zlib, self._step = before, self._step // 2
            else:
                self.unconsumed_tail = self._zlib.unconsumed_tail + data[self._step :]
                return piece

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    @property
    def unused_data(self) -> bytes:
        return self._zlib.unused_data + self.unconsumed_tail
