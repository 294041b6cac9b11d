"""The checks of published tables: their verdicts and the metadata that they show."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventlake.checks.published import check_published
from eventlake.rules.types import TableSchema
from eventlake.runs.unit import Window
from tests.support.lakes.archive import order
from tests.support.lakes.retyping import lake_of
from tests.support.lakes.runs import Runs, utc

FIRST, SECOND = "2026-10-01", "2026-10-02"


@pytest.fixture
def runs(runs: Runs) -> Runs:
    """A table with two rows on one day and one row on the next."""
    runs.archive.day(FIRST).file(
        "a", order("m1", f"{FIRST}T07:00", n=1), order("m2", f"{FIRST}T08:00")
    )
    runs.load(SECOND, order("m3", f"{SECOND}T07:00", n=3))
    return runs


def checked(runs: Runs, end: str = "2026-10-03") -> dict[str, tuple[bool, dict[str, object]]]:
    schema: TableSchema = runs.state().tables["shop.track_order"]
    window = Window(utc(FIRST), utc(end))
    results = check_published(lake_of(runs), runs.source, schema, window)
    return {result.check: (result.passed, dict(result.evidence)) for result in results}


def file_of(runs: Runs, day: str, hour: str = "07") -> Path:
    partition = runs.partitions("track_order")[day, hour]
    [file] = runs.storage.files(partition.location)
    return runs.root / file.path


def test_files_and_rows_of_the_days_are_counted(runs: Runs) -> None:
    assert checked(runs) == {
        "dedup": (True, {"rows": 3, "ids_twice": 0, "window_days": 7}),
        "types": (True, {"files": 3, "problems": ""}),
        "conservation": (True, {"rows": 3, "published": 3}),
    }
    assert checked(runs, SECOND)["types"] == (True, {"files": 2, "problems": ""})
    assert checked(runs, SECOND)["conservation"] == (True, {"rows": 2, "published": 2})


def test_a_file_with_another_type_is_named(runs: Runs) -> None:
    path = file_of(runs, SECOND)
    rows = pq.ParquetFile(path).read()
    column = rows.schema.get_field_index("properties_n")
    pq.write_table(rows.set_column(column, "properties_n", pa.array(["3"])), path)
    problem = f"{path.name}: properties_n: string in the file, int64 in the table"
    assert checked(runs)["types"] == (False, {"files": 3, "problems": problem})
    assert checked(runs)["conservation"][0]


def test_rows_that_are_there_twice_are_counted(runs: Runs) -> None:
    path = file_of(runs, SECOND)
    path.with_name("again.parquet").write_bytes(path.read_bytes())
    found = checked(runs)
    assert found["dedup"] == (False, {"rows": 4, "ids_twice": 1, "window_days": 7})
    assert found["types"] == (True, {"files": 4, "problems": ""})
    assert found["conservation"] == (False, {"rows": 4, "published": 3})
