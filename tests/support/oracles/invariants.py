"""What holds for every lake, whatever was done to it."""

from collections import Counter
from collections.abc import Callable

import pyarrow as pa

from eventlake.columnar.id_hashes import hash_id, words
from eventlake.state.source_state import SourceState
from tests.support.faults.faults import NOTHING_LEFT, left, sweep
from tests.support.lakes.runs import Runs

ACCOUNTED_FOR = ("row_count", "duplicates", "rejected", "suppressed", "skipped")


def held_ids(runs: Runs, chosen: Callable[[str], bool] = lambda day: True) -> Counter[str]:
    """Every message id in the lake, or of some days; reading holds the catalog's counts to the
    files."""
    rows = (row for table in runs.tables() for row in runs.rows(table))
    return Counter(row["message_id"] for row in rows if chosen(row["day"]))


def is_indexed(state: SourceState) -> Callable[[str], bool]:
    """Whether the index has the events of a day; it has let go of days long past."""
    return lambda day: day >= (state.index_from or "") or day in state.index


def check_invariants(runs: Runs, at_rest: bool = True) -> None:
    """Each event once; catalog, state, index, files and reports agree; nothing is left behind."""
    ids = held_ids(runs)
    assert [id for id, times in ids.items() if times > 1] == []
    state = runs.state()
    for table in runs.tables():
        partitions = runs.partitions(table).values()
        assert state.rows.get(f"shop.{table}", 0) == sum(p.rows for p in partitions)
        for partition in partitions:
            assert len(runs.storage.files(partition.location)) == partition.files
    indexed = Counter(entry[:-1] for entries in runs.index().values() for entry in entries)
    assert indexed == Counter(_hashed(id) for id in held_ids(runs, is_indexed(state)))
    for lines in runs.reports().values():
        source, *tables = lines
        assert source["rows_in"] == sum(source[name] for name in ACCOUNTED_FOR), source
        if tables:
            assert source["row_count"] == sum(table["row_count"] for table in tables)
    if at_rest:
        assert left(runs) == NOTHING_LEFT


def check_sweep(runs: Runs) -> None:
    sweep(runs, "no fault")


def _hashed(id: str) -> tuple[int, ...]:
    return tuple(int(word) for word in words(pa.array([hash_id(id)], pa.binary(16)))[0])
