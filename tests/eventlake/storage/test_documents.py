"""State files: each says its format version, and what cannot be read is refused with a remedy."""

import json

import pytest

from eventlake.rules.errors import StateError
from eventlake.state.ledger import LedgerEntry, LedgerPage
from eventlake.storage.documents import FORMAT_VERSION, decode, encode

PAGE = LedgerPage({"a": LedgerEntry("a", 1, "t", 2, ("2026-10-01T07",))})


def test_what_is_written_is_read_again() -> None:
    data = encode(PAGE)
    assert json.loads(data)["format_version"] == FORMAT_VERSION
    assert decode(data, LedgerPage, "x.json") == PAGE


def test_a_newer_format_is_refused() -> None:
    newer = json.dumps({"format_version": FORMAT_VERSION + 1, "files": "of another kind"}).encode()
    with pytest.raises(StateError, match=r"x\.json has format version \d+.*upgrade this one"):
        decode(newer, LedgerPage, "x.json")


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"{}", b'{"format_version": 1, "files": 5}', encode(PAGE)[:-3], b"\xff"],
)
def test_a_damaged_file_is_refused_by_name(data: bytes) -> None:
    with pytest.raises(StateError, match=r"x\.json cannot be read as LedgerPage.*backup"):
        decode(data, LedgerPage, "x.json")
