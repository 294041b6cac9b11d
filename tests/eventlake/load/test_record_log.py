"""How the files of a record log are numbered, across all units of a run."""

import pytest

from eventlake.rules import paths
from eventlake.runs.record_log import last_numbers
from eventlake.state.manifest import NewFile
from tests.support.lakes.archive import order
from tests.support.lakes.runs import SOURCE_ID, Runs

DAYS = ("2026-10-01", "2026-10-02", "2026-10-03")


def log_file(name: str) -> NewFile:
    return NewFile("written", f"segment-tracking/W1/S1/R1/{name}.parquet", 1, 1)


@pytest.mark.parametrize(
    ("names", "last"),
    [
        ([], {}),
        (["records_loaded.0"], {"records_loaded": 0}),
        (["records_loaded.10", "records_loaded.9"], {"records_loaded": 10}),
        (["records_loaded.9", "records_loaded.10"], {"records_loaded": 10}),
        (
            ["records_loaded.2", "records_null.0", "records_loaded.1", "records_null.1"],
            {"records_loaded": 2, "records_null": 1},
        ),
    ],
)
def test_the_last_number_of_each_batch_type_is_found(
    names: list[str], last: dict[str, int]
) -> None:
    assert last_numbers(map(log_file, names)) == last


def logged(runs: Runs, run_id: str) -> list[str]:
    files = runs.storage.files(paths.tracking("W1", SOURCE_ID, run_id))
    return [file.name for file in files if file.name.endswith(".parquet")]


def test_each_unit_continues_the_numbers_of_the_units_before_it(runs: Runs) -> None:
    for day in DAYS:
        good = order(day, f"{day}T07:00")
        runs.archive.day(day).file("a", good, *(["no JSON"] if day != DAYS[1] else []))
    runs.sync()
    assert logged(runs, "R1") == [
        "records_loaded.0.parquet",
        "records_loaded.1.parquet",
        "records_loaded.2.parquet",
        "records_rejected.0.parquet",
        "records_rejected.1.parquet",
    ]
    assert len(runs.records("R1")) == 5
    runs.archive.day(DAYS[0]).file("b", order("late", f"{DAYS[0]}T07:00"))
    runs.sync()
    assert logged(runs, "R2") == ["records_loaded.0.parquet"]
