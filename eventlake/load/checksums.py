"""Checksums of raw files: whether a file with another time holds the same bytes."""

from collections.abc import Callable
from hashlib import blake2b
from typing import Any, BinaryIO, Self

_AT_ONCE = 1 << 20


class Checksum:
    """Of the bytes of a stream, taken while it is read to its end."""

    def __init__(self, open_stream: Callable[[], BinaryIO]) -> None:
        self._open, self._streams = open_stream, list[BinaryIO]()

    def open(self) -> Any:
        """The stream, as much of a `BinaryIO` as its readers need."""
        self._streams.append(self._open())
        self._hash = blake2b(digest_size=16)
        return self

    def read(self, size: int) -> bytes:
        data = self._streams[-1].read(size)
        self._hash.update(data)
        return data

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._streams.pop().close()

    @property
    def value(self) -> str:
        return self._hash.hexdigest()


def checksum(open_stream: Callable[[], BinaryIO]) -> str:
    """The checksum of all that a stream holds."""
    found = Checksum(open_stream)
    with found.open() as stream:
        while stream.read(_AT_ONCE):
            pass
    return found.value
