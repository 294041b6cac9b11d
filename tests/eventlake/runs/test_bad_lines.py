"""Bad lines of every kind between good ones: the good are loaded, the bad are told of."""

import gzip
import tracemalloc
from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest

from eventlake.load import not_loaded
from eventlake.rules import paths
from tests.support.lakes.archive import as_line, track
from tests.support.lakes.runs import SOURCE_ID, Runs

MIB = 1 << 20
START = b'{"type":"track","event":"Order","messageId":"bad","receivedAt":"2026-10-01T07:00Z"'


def order(properties: bytes) -> bytes:
    """An order that would be good, were it not for its properties."""
    return START + b',"properties":' + properties + b"}"


DEEP = order(b'{"a":' * 100 + b"1" + b"}" * 100)
LONG = order(b'{"note":"' + b"0123456789abcdef" * (10 * MIB // 16) + b'"}')

# The line, and what the record log says of it.
BAD_LINES = [
    (b"<h1>502 Bad Gateway</h1>", "The line is not JSON: expecting value at character 1."),
    (
        START,  # cut in the middle
        "The line is not JSON: expecting ',' delimiter at character 83.",
    ),
    (
        order(b"{}") + b" and more",
        "The line is not JSON: something follows the end of the value at character 101.",
    ),
    (order(b'{"ratio":NaN}'), "The line is not JSON: NaN is no JSON value."),
    (order(b'{"ratio":-Infinity}'), "The line is not JSON: -Infinity is no JSON value."),
    (
        order(b'{"note":"a\x01b"}'),
        "The line is not JSON: invalid control character at character 107.",
    ),
    (b"\x00" * 40, "The line is not JSON: expecting value at character 1."),
    (b"[1,2]", "The line is JSON, but not an object: it is [1,2]."),
    (b'"text"', 'The line is JSON, but not an object: it is "text".'),
    (b"null", "The line is JSON, but not an object: it is null."),
    (order(b'{"city":"Z\xfcrich"}'), "The line is not UTF-8: byte 107 is 0xfc."),
    (
        order(b'{"half":"\\ud83d"}'),
        "A text holds half of a surrogate pair, which is no character.",
    ),
    (LONG, "The line is longer than the limit `line_bytes`: over 1048576 bytes."),
    (DEEP, "The event is nested deeper than the limit `depth`: allowed are 64 levels."),
    (
        START.replace(b'"track"', b'"delete"') + b"}",
        '`type` is none of track, identify, page, screen, group, alias: it is "delete".',
    ),
    (START.replace(b'"Order"', b'""') + b"}", 'A track has no event name in `event`: it is "".'),
    (
        START.replace(b"T07:00Z", b"T25:00Z") + b"}",
        '`receivedAt` is missing or is no ISO 8601 time: it is "2026-10-01T25:00Z".',
    ),
    (START.replace(b'"bad"', b"null") + b"}", "`messageId` is missing or empty."),
]


def good(number: int) -> bytes:
    return as_line(track("Order", f"good-{number:02}", "2026-10-01T07:00", n=number))


def log_of(runs: Runs, status: str) -> list[dict[str, Any]]:
    """The records of a status, in the order of the archive."""
    records: list[dict[str, Any]] = []
    for file in runs.storage.files(paths.tracking("W1", SOURCE_ID, "R1")):
        if file.name.endswith(".parquet"):
            with runs.storage.open_input(file.path) as stream:
                records += pq.ParquetFile(stream).read().to_pylist()
    found = [record for record in records if record["status"] == status]
    return sorted(found, key=lambda record: (record["raw_file"], record["raw_line"]))


@pytest.mark.parametrize("batch_bytes", [1, not_loaded.BATCH_BYTES])
def test_every_good_line_is_loaded_and_every_bad_one_told_of_at_its_place(
    runs: Runs, batch_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(not_loaded, "BATCH_BYTES", batch_bytes)
    lines = [good(0)]
    for number, (bad, _) in enumerate(BAD_LINES, start=1):
        lines += [bad, good(number)]
    path = runs.archive.day("2026-10-01").file("a", *lines)
    report = runs.sync()

    name = str(path.relative_to(runs.root))
    assert runs.ids("track_order") == [f"good-{n:02}" for n in range(len(BAD_LINES) + 1)]
    assert (report.row_count, report.rejected) == (len(BAD_LINES) + 1, len(BAD_LINES))
    told = log_of(runs, "rejected") + log_of(runs, "NULL")
    assert [(r["raw_file"], r["raw_line"], r["status_message"]) for r in told] == [
        (name, 2 * number, message) for number, (_, message) in enumerate(BAD_LINES, start=1)
    ]
    # The payload as it came, as far as text can show it, and never more than a line may have.
    payloads = [bad[: MIB + 1].decode(errors="replace") for bad, _ in BAD_LINES]
    assert [record["record_payload"] for record in told] == payloads


def damaged(packed: bytes) -> bytes:
    middle = len(packed) // 2
    return packed[:middle] + b"\xff" * 16 + packed[middle + 16 :]


def cut(packed: bytes) -> bytes:
    return packed[: len(packed) // 2]


@pytest.mark.parametrize(
    ("break_it", "why"),
    [(cut, "the file is cut off before its end"), (damaged, "the gzip data are damaged (")],
)
def test_a_broken_file_between_good_ones_costs_its_broken_part_alone(
    runs: Runs, break_it: Callable[[bytes], bytes], why: str
) -> None:
    day = runs.archive.day("2026-10-01")
    noise = Random(7)
    orders = {
        name: [
            track("Order", f"{name}-{n:03}", "2026-10-01T07:00", n=noise.random())
            for n in range(200)
        ]
        for name in "abc"
    }
    for name in "ac":
        day.file(name, *orders[name])
    content = b"".join(as_line(line) + b"\n" for line in orders["b"])
    broken = day.raw("b.gz", break_it(gzip.compress(content)))
    report = runs.sync()

    ids = runs.ids("track_order")
    saved = [id for id in ids if id.startswith("b-")]
    assert [id for id in ids if not id.startswith("b-")] == [
        line["messageId"] for name in "ac" for line in orders[name]
    ]
    assert 80 <= len(saved) <= 120
    assert saved == [line["messageId"] for line in orders["b"][: len(saved)]]
    # After the damage there may be rubbish before the place at which it is noticed.
    *rubbish, told = log_of(runs, "rejected")
    assert break_it is damaged or not rubbish
    name, place = str(broken.relative_to(runs.root)), len(saved) + len(rubbish) + 1
    assert [(r["raw_file"], r["raw_line"]) for r in (*rubbish, told)] == [
        (name, line) for line in range(len(saved) + 1, place + 1)
    ]
    assert told["identifier"] == f"{name}:{place}"
    assert told["status_message"].startswith(
        f"The file is broken here; what follows could not be read: {why}"
    )
    assert report.rows_in == len(ids) + report.rejected == len(ids) + len(rubbish) + 1


def test_a_line_of_fifty_megabytes_is_never_held_as_a_whole(runs: Runs) -> None:
    long = b'{"messageId":"' + b"x" * (50 * MIB)
    runs.archive.day("2026-10-01").file("a", good(0), long, good(1))
    tracemalloc.start()
    try:
        runs.sync()
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert runs.ids("track_order") == ["good-00", "good-01"]
    assert most < 25 * MIB
