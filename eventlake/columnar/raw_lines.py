"""The lines of a raw file, gzipped or plain, in bounded memory, however broken the file is."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from eventlake.columnar.gunzip import MAGIC, PIECE, BrokenGzip, gunzip


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
        for piece in self.pieces():
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole:
                self.lines += 1
                yield self.lines, line[: self.limit + 1]
            rest = rest[: self.limit + 1]
        if rest and not self.broken:
            self.lines += 1
            yield self.lines, rest

    def pieces(self) -> Iterator[bytes]:
        """The content as it comes, unpacked."""
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
