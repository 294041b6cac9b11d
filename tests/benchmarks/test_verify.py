"""Wrong tables are noticed, whatever is wrong about them."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.contestants import Tables
from benchmarks.truth import TableTruth, Truth
from benchmarks.verify import wrongs

FIRST, SECOND = (datetime(2026, 10, 1, 7, minute, tzinfo=UTC) for minute in (5, 6))
TRUTH = Truth(
    lines=3,
    bytes=300,
    duplicates=1,
    tables={
        "page": TableTruth(
            rows=2,
            received_ms=int((FIRST.timestamp() + SECOND.timestamp()) * 1000),
            sums={"propertiesscrolldepth": 0.75},
        )
    },
    slots={"page/2026-10-01/07": 2},
)
RIGHT: dict[str, list[Any]] = {
    "message_id": ["a", "b"],
    "received_at": [FIRST, SECOND],
    "properties_scroll_depth": [0.5, 0.25],
}


def tables(folder: Path, name: str = "page", hour: str = "07", **columns: list[Any]) -> Tables:
    file = folder / f"day=2026-10-01/hr={hour}/1.parquet"
    file.parent.mkdir(parents=True)
    pq.write_table(pa.table({**RIGHT, **columns}), file)
    return {name: [file]}


def test_the_right_tables_are_right(tmp_path: Path) -> None:
    assert wrongs(tables(tmp_path), TRUTH, hours=True) == []


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (lambda at: tables(at, name="pages"), "tables missing: page"),
        (lambda at: tables(at, hour="08"), "page/2026-10-01/07: 0 rows instead of 2"),
        (lambda at: tables(at, message_id=["a", "a"]), "2 message ids, 1 distinct, instead of 2"),
        (lambda at: tables(at, received_at=[SECOND, SECOND]), "another copy"),
        (lambda at: tables(at, properties_scroll_depth=[0.5, 0.26]), "adds up to 0.76"),
        (lambda at: tables(at, properties_scroll_depth=["0.5", "0.25"]), "no numeric column"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, made: Callable[[Path], Tables], told: str) -> None:
    assert told in "\n".join(wrongs(made(tmp_path), TRUTH, hours=True))
