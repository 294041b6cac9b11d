"""Gzip files as they are found in archives: whole, in several members, cut off."""

import gzip
import zlib
from pathlib import Path

import pytest

from eventlake.sample.archive import cut_off, gzipped, write_if_different

LINES = [b"%d " % number + b"abc%d" % (number * 7919) * 150 for number in range(1_200)]


def test_a_tidy_file_is_one_member_and_ends_its_last_line() -> None:
    data = b"".join(gzipped(LINES))
    member = zlib.decompressobj(31)
    assert member.decompress(data).split(b"\n") == [*LINES, b""]
    assert member.eof and not member.unused_data


def test_an_untidy_file_has_several_members_and_no_last_line_end() -> None:
    data = b"".join(gzipped(LINES, tidy=False))
    assert gzip.decompress(data).split(b"\n") == LINES
    first = zlib.decompressobj(31)
    first.decompress(data)
    assert first.unused_data


def test_no_lines_make_an_empty_gzip_file() -> None:
    assert gzip.decompress(b"".join(gzipped([]))) == b""


def test_a_cut_file_keeps_its_whole_lines_and_a_piece_of_the_next() -> None:
    data, whole = cut_off(b"".join(gzipped(LINES)))
    with pytest.raises(EOFError):
        gzip.decompress(data)
    *left, piece = zlib.decompressobj(31).decompress(data).split(b"\n")
    assert left == LINES[:whole]
    assert 0 < whole < len(LINES)
    assert 250 <= len(piece) <= len(LINES[whole]) - 250
    assert LINES[whole].startswith(piece)


def test_lines_too_short_to_be_cut_in_the_middle_are_refused() -> None:
    with pytest.raises(ValueError, match="no line is long enough"):
        cut_off(b"".join(gzipped([b"short"] * 50)))


def test_a_file_with_other_bytes_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "day" / "a.gz"
    assert write_if_different(path, [b"one", b"two"]) == 6
    assert write_if_different(path, [b"three"]) == 5
    assert path.read_bytes() == b"three"
    assert [found.name for found in path.parent.iterdir()] == ["a.gz"]
