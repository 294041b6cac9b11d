"""The lists of suppressed people in the lake: changed by anybody, at any time, and none is lost."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventlake.rules import paths
from eventlake.rules.errors import StateError
from eventlake.rules.suppression import IdKind
from eventlake.state.suppression import KEPT, WHOLE_LAKE, Entries, change, newest
from eventlake.storage import Storage
from tests.support.lakes.runs import utc

NOW = utc("2026-10-20")
USER, VISITOR = IdKind.USER, IdKind.ANONYMOUS


def add(storage: Storage, *ids: str, kind: IdKind = USER, source: str = WHOLE_LAKE) -> None:
    change(storage, lambda entries: entries.with_ids(ids, kind, source, NOW), NOW)


def versions(storage: Storage) -> list[str]:
    return [file.name for file in storage.files(paths.suppression())]


def test_ids_count_for_the_whole_lake_or_for_one_source(storage: Storage) -> None:
    add(storage, "u2", "u1")
    add(storage, "u3", "u1", source="S1")
    add(storage, "a1", kind=VISITOR, source="S2")
    entries = newest(storage).entries
    lists = [(kind, source) for kind in IdKind for source in ("S1", "S2")]
    applying = {one: entries.applying_to(*one).to_pylist() for one in lists}
    of_users = {(USER, "S1"): ["u1", "u2", "u3"], (USER, "S2"): ["u1", "u2"]}
    assert applying == {**of_users, (VISITOR, "S1"): [], (VISITOR, "S2"): ["a1"]}


def test_what_changes_nothing_makes_no_version(storage: Storage) -> None:
    add(storage, "u1")
    add(storage, "u1")
    change(storage, lambda entries: entries.without_ids(["x"], USER, WHOLE_LAKE), NOW)
    change(storage, lambda entries: entries.without_ids(["u1"], USER, "S1"), NOW)
    assert versions(storage) == ["0000000001.parquet"]
    (row,) = newest(storage).entries.rows()
    assert row == {"source_id": "", "kind": "userId", "id": "u1", "added": NOW}


def test_concurrent_changes_are_all_kept(storage: Storage) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: add(storage, f"u{n:02}"), range(12)))
    assert newest(storage).number == 12
    assert newest(storage).entries.of(USER).to_pylist() == [f"u{n:02}" for n in range(12)]


def test_a_version_stays_for_the_runs_that_use_it(storage: Storage) -> None:
    for n in range(3):
        add(storage, f"u{n}")
    later = utc("2100-01-01")
    change(storage, lambda e: e.without_ids(["u0"], USER, WHOLE_LAKE), later - KEPT)
    assert versions(storage)[0] == "0000000004.parquet"
    add(storage, "u9")
    soon = NOW + KEPT - timedelta(days=1)
    change(storage, lambda e: e.without_ids(["u9"], USER, WHOLE_LAKE), soon)
    assert len(versions(storage)) == 3


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"rubbish", "cannot be read as a list of suppressed people"),
        ({}, "cannot be read as a list of suppressed people"),
        ({"format_version": "99"}, "format version 99; this release knows up to"),
    ],
)
def test_bad_lists_fail(storage: Storage, data: bytes | dict[str, str], message: str) -> None:
    if isinstance(data, dict):
        out = pa.BufferOutputStream()
        pq.write_table(Entries().table.replace_schema_metadata(data), out)
        data = bytes(out.getvalue())
    storage.write(paths.suppression_list(1), data)
    with pytest.raises(StateError, match=message):
        newest(storage)
