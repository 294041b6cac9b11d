"""The lines of a raw file, whole or broken, and never more of it in memory than needed."""

import gzip
import io
import random
import tracemalloc
import zlib
from dataclasses import dataclass
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from isal import isal_zlib

from eventlake.columnar import raw_lines
from eventlake.columnar.raw_lines import BYTE_ORDER_MARK, RawLines

LIMIT = 100
# As hard to compress as events are, so that a fault in the middle leaves lines on both sides.
LINES = [bytes(random.Random(n).choices(b"abcdefgh", k=30)) for n in range(200)]
WHOLE = b"".join(line + b"\n" for line in LINES)


def read(data: bytes, limit: int = LIMIT) -> tuple[list[bytes], str | None]:
    lines = RawLines(lambda: io.BytesIO(data), limit)
    numbered = list(lines)
    assert [number for number, _ in numbered] == list(range(1, len(numbered) + 1))
    assert lines.lines == len(numbered)
    return [line for _, line in numbered], lines.broken


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"a\nbc\n", [b"a", b"bc"]),
        (b"a\nbc", [b"a", b"bc"]),
        (b"a\r\nb\r\n", [b"a\r", b"b\r"]),
        (b"\n\na\n \nb", [b"", b"", b"a", b" ", b"b"]),
        (BYTE_ORDER_MARK + b"a\n" + BYTE_ORDER_MARK, [b"a", BYTE_ORDER_MARK]),
        (b"\xef\xbb\nb", [b"\xef\xbb", b"b"]),
    ],
)
@pytest.mark.parametrize("gzipped", [True, False])
def test_lines_end_at_newlines_and_the_last_one_needs_none(
    content: bytes, lines: list[bytes], gzipped: bool
) -> None:
    assert read(gzip.compress(content) if gzipped else content) == (lines, None)


@pytest.mark.parametrize("padding", [b"", b"\0" * 512])
def test_several_gzip_members_are_one_file_padded_or_not(padding: bytes) -> None:
    parts = (b"a\nb", b"", b"c\nd\n", b"e")
    packed = b"".join(gzip.compress(part) + padding for part in parts)
    assert read(packed) == ([b"a", b"bc", b"d", b"e"], None)


def test_many_empty_members_cost_no_more_than_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []

    class Counted:
        def __init__(self, wbits: int) -> None:
            self.inner = isal_zlib.decompressobj(wbits=wbits)

        def decompress(self, data: bytes, most: int) -> bytes:
            given.append(len(data))
            return bytes(self.inner.decompress(data, most))

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

    counted = SimpleNamespace(error=isal_zlib.error, decompressobj=Counted)
    monkeypatch.setattr(raw_lines, "isal_zlib", counted)
    members = 2_000
    assert read(gzip.compress(b"") * members + gzip.compress(b"a\n")) == ([b"a"], None)
    assert sum(given) <= members * raw_lines._FIRST_BYTES


@pytest.mark.parametrize("cut", range(20, len(gzip.compress(WHOLE)), 97))
def test_a_cut_file_gives_every_line_before_the_cut(cut: int) -> None:
    packed = gzip.compress(WHOLE)[:cut]
    readable = zlib.decompressobj(wbits=31).decompress(packed)
    lines, broken = read(packed)
    assert broken == "the file is cut off before its end"
    assert lines == LINES[: len(lines)]
    # The last byte before the cut may be that of a newline.
    assert readable.count(b"\n") - len(lines) in (0, 1)


def test_a_file_cut_in_its_second_member_keeps_the_first() -> None:
    packed = gzip.compress(b"a\nb\n") + gzip.compress(WHOLE)[:12]
    assert read(packed) == ([b"a", b"b"], "the file is cut off before its end")


@pytest.mark.parametrize("place", [0.2, 0.5, 0.9])
def test_damage_costs_only_what_follows_it(place: float) -> None:
    packed = bytearray(gzip.compress(WHOLE))
    fault = int(len(packed) * place)
    packed[fault : fault + 16] = b"\xff" * 16
    lines, broken = read(bytes(packed))
    assert broken is not None
    assert broken.startswith("the gzip data are damaged")
    intact = sum(a == b for a, b in zip(lines, LINES, strict=False))
    assert intact >= int(len(LINES) * place) - 10
    assert lines[:intact] == LINES[:intact]


def test_a_wrong_checksum_costs_no_line_but_is_reported() -> None:
    packed = bytearray(gzip.compress(WHOLE))
    packed[-8] ^= 0xFF
    lines, broken = read(bytes(packed))
    assert lines == LINES
    assert broken is not None


def test_damage_in_the_second_member_keeps_the_first_and_its_padding() -> None:
    second = bytearray(gzip.compress(WHOLE))
    second[-8] ^= 0xFF
    lines, broken = read(gzip.compress(b"a\n") + b"\0" * 10 + bytes(second))
    assert lines == [b"a", *LINES]
    assert broken is not None


@dataclass
class CountedZlib:
    """Decompresses like zlib and notes the size of each input, also of copies."""

    inner: Any
    sizes: list[int]

    def decompress(self, data: bytes, most: int) -> bytes:
        self.sizes.append(len(data))
        piece: bytes = self.inner.decompress(data, most)
        return piece

    def copy(self) -> "CountedZlib":
        return CountedZlib(self.inner.copy(), self.sizes)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def test_damage_late_in_a_large_file_is_found_by_halving(monkeypatch: pytest.MonkeyPatch) -> None:
    noise = random.Random(1).randbytes(3 << 20).replace(b"\n", b"")
    packed = bytearray(gzip.compress(noise[: 2 << 20] + b"\nend\n" + noise, compresslevel=1))
    packed[-8] ^= 0xFF  # nothing before the checksum is lost
    sizes: list[int] = []
    counted = SimpleNamespace(
        error=zlib.error, decompressobj=lambda wbits: CountedZlib(zlib.decompressobj(wbits), sizes)
    )
    monkeypatch.setattr(raw_lines, "zlib", counted)
    lines, broken = read(bytes(packed))
    assert [lines[0], lines[1]] == [noise[: LIMIT + 1], b"end"]
    assert broken is not None
    pieces = len(packed) // raw_lines.PIECE + 1
    halvings = raw_lines.PIECE.bit_length()
    # Each halving fails once and succeeds at most twice before the next.
    assert halvings < len(sizes) <= 2 * pieces + 3 * halvings
    assert sum(sizes) < 3 * len(packed)


@pytest.mark.parametrize("gzipped", [True, False])
def test_a_line_over_the_limit_is_cut_one_byte_beyond_it(gzipped: bool) -> None:
    content = b"a\n" + b"x" * (3 << 20) + b"\nb\n" + b"y" * LIMIT
    lines, broken = read(gzip.compress(content) if gzipped else content)
    assert lines == [b"a", b"x" * (LIMIT + 1), b"b", b"y" * LIMIT]
    assert broken is None


def test_an_endless_line_is_read_in_bounded_memory() -> None:
    packed = gzip.compress(b"x" * (64 << 20) + b"\nb")
    tracemalloc.start()
    try:
        lines, _ = read(packed)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert lines == [b"x" * (LIMIT + 1), b"b"]
    assert most < 8 << 20


@given(
    st.lists(st.binary(max_size=12), max_size=8),
    st.lists(st.integers(0, 100), max_size=4),
    st.booleans(),
)
def test_any_bytes_are_the_same_lines_plain_or_in_members(
    parts: list[bytes], cuts: list[int], last_newline: bool
) -> None:
    content = b"\n".join(parts) + b"\n" * last_newline
    edges = sorted({0, *(cut % (len(content) + 1) for cut in cuts), len(content)})
    members = [content[a:b] for a, b in pairwise(edges)]
    packed = b"".join(map(gzip.compress, members)) or gzip.compress(b"")
    wanted = content.split(b"\n")
    wanted = wanted[:-1] if wanted[-1] == b"" else wanted
    assert read(packed) == (wanted, None)
    if not content.startswith(b"\x1f\x8b"):
        assert read(content) == (wanted, None)
