"""A raw file costs only itself, whatever is in it: the others load, in bounded memory."""

import gc
import gzip
import tracemalloc
from collections.abc import Iterator

import pytest

from eventlake.columnar import raw_lines
from eventlake.columnar.raw_lines import BYTE_ORDER_MARK
from eventlake.load import stage
from eventlake.load.warm_up import warm_up
from tests.support.lakes.archive import as_line, track
from tests.support.lakes.runs import Runs

MEGABYTE, PIECE = 1 << 20, 1 << 12
GOOD = [track("Order", f"m{n}", "2026-10-01T07:00", n=n) for n in range(5)]
LINE = as_line(track("Order", "bad", "2026-10-01T07:00")) + b"\n"


@pytest.fixture(autouse=True)
def _traced() -> Iterator[None]:
    warm_up()  # compiling takes memory, too
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("content", "loaded", "rejected"),
    [
        pytest.param(gzip.compress(b"\n" * (6 * MEGABYTE)), 0, 0, id="nothing but newlines"),
        pytest.param(gzip.compress(b"7\n" * 400_000), 0, PIECE // 2 + 1, id="short lines"),
        pytest.param(gzip.compress(b"x" * (64 * MEGABYTE) + b"\n" + LINE), 1, 1, id="a long line"),
        pytest.param(gzip.compress(b"") * 30_000 + gzip.compress(LINE), 1, 0, id="empty members"),
        pytest.param(gzip.compress(LINE)[:-8] + b"\0" * 8, 1, 1, id="a wrong checksum"),
        pytest.param(gzip.compress(LINE) + b"garbage", 1, 1, id="garbage after the end"),
        pytest.param(gzip.compress(BYTE_ORDER_MARK + LINE), 1, 0, id="a byte-order mark"),
        pytest.param(gzip.compress(LINE.decode().encode("utf-16")), 0, 2, id="UTF-16"),
        pytest.param(b"", 0, 0, id="an empty file"),
    ],
)  # fmt: skip
def test_a_hostile_file_costs_only_itself(
    runs: Runs,
    monkeypatch: pytest.MonkeyPatch,
    content: bytes,
    loaded: int,
    rejected: int,
) -> None:
    monkeypatch.setattr(raw_lines, "PIECE", PIECE)
    monkeypatch.setattr(stage, "FLUSH_LINES", 1_000)
    runs.set(limits={"rejected_lines": 1_000})
    day = runs.archive.day("2026-10-01")
    day.raw("a.gz", content)
    day.file("b", *GOOD)
    report = runs.sync()
    assert (report.row_count, report.rejected) == (len(GOOD) + loaded, rejected)
    assert len(runs.records()) == report.rows_in
    assert tracemalloc.get_traced_memory()[1] < 400 * MEGABYTE
    assert runs.sync().rows_in == 0


def test_rejected_lines_leave_nothing_to_collect(runs: Runs) -> None:
    """Collecting is paused while runs work: 2 million of them once took 4 GB."""
    runs.set(fail_above_rejected_percent=100)
    lines = 1_000
    gc.collect()
    gc.disable()
    try:
        report = runs.load("2026-10-01", *["7", "{", '{"type":"x"}', '{"n":NaN}'] * (lines // 4))
        assert (report.rejected, len(runs.records())) == (lines, lines)
        assert gc.collect() < lines
    finally:
        gc.enable()
