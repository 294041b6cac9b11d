"""Lines of a raw file, gzipped or plain, in bounded memory, however damaged the file is."""

import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO

from isal import isal_zlib

MAGIC = b"\x1f\x8b"
PIECE = 1 << 20
"""Bytes read, and bytes yielded, at once: a compressed megabyte may expand to a gigabyte."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""Some programs put it at the beginning of a file; it is no part of the first line."""
_FIRST_BYTES = 8 << 10  # for a new gzip member, which returns a copy of what it does not use

_GZIP = 16 + zlib.MAX_WBITS


class BrokenGzip(Exception):
    """The data end too early or are damaged; the message has the reason."""


def gunzip(first: bytes, stream: BinaryIO, again: Callable[[], BinaryIO]) -> Iterator[bytes]:
    """Yield all readable data, up to the damaged byte; then raise `BrokenGzip`.

    `first` was read from the stream already; `again` opens a new stream.
    """
    given = 0
    try:
        for piece in _members(first, stream, lambda: isal_zlib.decompressobj(wbits=_GZIP)):
            given += len(piece)
            yield piece
    except isal_zlib.error as error:  # type: ignore[misc]  # its stub says instance
        # isal returns nothing of a damaged piece; the slower zlib can be rewound.
        with again() as stream:
            for piece in _salvaged(stream):
                yield piece[max(0, given) :]
                given -= len(piece)
        raise BrokenGzip(f"the gzip data are damaged ({error})") from error


def _members(data: bytes, stream: BinaryIO, new_member: Callable[[], Any]) -> Iterator[bytes]:
    """Decompress gzip members in sequence, without padding zeros."""
    at = 0
    while at < len(data):
        member, unread, step = new_member(), b"", _FIRST_BYTES
        while not member.eof:
            if not unread:
                unread = data[at : at + step]
                at, step = at + len(unread), 2 * step
            piece: bytes = member.decompress(unread, PIECE)
            yield piece
            unread = member.unconsumed_tail
            if not piece and not unread and at == len(data) and not member.eof:
                data, at = stream.read(PIECE), 0
                if not data:
                    raise BrokenGzip("the file is cut off before its end")
        at = _after_zeros(data, at - len(member.unused_data))
        while at == len(data) and (data := stream.read(PIECE)):
            at = _after_zeros(data, 0)


def _after_zeros(data: bytes, at: int) -> int:
    while at < len(data) and data[at] == 0:
        zeros = data[at : at + 4096]
        at += len(zeros) - len(zeros.lstrip(b"\0"))
    return at


def _salvaged(stream: BinaryIO) -> Iterator[bytes]:
    """The data before the damage."""
    with suppress(zlib.error):
        yield from _members(stream.read(PIECE), stream, _CarefulMember)


class _CarefulMember:
    """A gzip member that returns all data before the damage in ever smaller steps, then fails."""

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


@dataclass(slots=True)
class RawLines:
    """Iterate to get (line number from 1, line); afterwards `broken` has the reason of an early
    end.

    A line over the limit is cut to one byte more than the limit: its reader can detect it, and
    memory stays bounded.
    """

    open: Callable[[], BinaryIO]
    limit: int
    lines: int = 0
    broken: str | None = None

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        rest = b""
        for piece in self.pieces():
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole:
                yield self._numbered(line[: self.limit + 1])
            rest = rest[: self.limit + 1]
        if rest and not self.broken:
            yield self._numbered(rest)

    def _numbered(self, line: bytes) -> tuple[int, bytes]:
        self.lines += 1
        return self.lines, line if self.lines > 1 else line.removeprefix(BYTE_ORDER_MARK)

    def pieces(self) -> Iterator[bytes]:
        """The content in pieces, decompressed."""
        try:
            with self.open() as stream:
                first = stream.read(PIECE)
                inflated = first.startswith(MAGIC)
                yield from gunzip(first, stream, self.open) if inflated else _plain(first, stream)
        except BrokenGzip as error:
            self.broken = str(error)


def _plain(first: bytes, stream: BinaryIO) -> Iterator[bytes]:
    yield first
    while piece := stream.read(PIECE):
        yield piece
