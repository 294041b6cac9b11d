"""The checks of published tables find every kind of damage, and the repair fixes it."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlake.catalog.base import CatalogColumn, CatalogPartition
from eventlake.checks.drift import made
from eventlake.checks.partitions import check_small_files
from eventlake.checks.view import PARTITIONS_AT_MOST, sample, share_of, slices
from eventlake.load.dedup import TableIds
from eventlake.load.write import LoadedFile
from eventlake.rules import clock, paths
from eventlake.rules.counts import TableReport
from eventlake.rules.errors import StateError
from eventlake.rules.partitions import DatePartition
from eventlake.rules.types import TableSchema
from eventlake.runs.publish import catch_up
from eventlake.runs.verify import CheckResult, Severity, check_table
from eventlake.settings.models import Source
from eventlake.state.manifest import note_pruned, read_manifest
from eventlake.state.source_state import read_state
from eventlake.storage.documents import encode
from tests.support.catalogs.by_hand import Checked, columns_and_places, mend, with_history
from tests.support.lakes.archive import order, page, track
from tests.support.lakes.glue_runs import catalog_entries, story
from tests.support.lakes.runs import SOURCE_ID, utc

SEVEN, EIGHT, NEXT_DAY = ("2026-10-01", "07"), ("2026-10-01", "08"), ("2026-10-02", "00")
ORDERS = "segment-data/data/S1/segment_type=track_order"


@pytest.mark.parametrize("lake", ["empty", "empty_on_glue"])
def test_a_lake_after_many_runs_passes(lake: str, request: pytest.FixtureRequest) -> None:
    """And it does once more after its catalog was lost, and made anew from the manifests."""
    empty: Checked = request.getfixturevalue(lake)
    story(empty.runs)
    results = empty.results(datetime.now(UTC) + timedelta(days=2))
    assert [str(result) for result in results.values() if not result.passed] == []
    assert {table for table, _ in results} == {"identify", "page", "track_order"}
    assert results["track_order", "partitions"].evidence == {
        "problems": 0,
        "partitions": 2,
        "looked_into": 2,
        "all_looked_into_after_days": 1,
        "files_read": 2,
        "rows_registered": 3,
        "rows_published": 3,
    }
    columns = len(empty.runs.table("track_order").columns)
    counted = {"columns": columns, "columns_in_catalog": columns, "footers": 2}
    assert counted.items() <= results["track_order", "drift"].evidence.items()

    rows = {table: empty.runs.rows(table) for table in empty.runs.tables()}
    for table in rows:
        empty.hand.drop(table)
    assert sorted(mend(empty).entries) == [f"shop.{table}" for table in sorted(rows)]
    assert empty.failed() == {}
    assert {table: empty.runs.rows(table) for table in empty.runs.tables()} == rows


def without(name: str) -> Callable[[list[CatalogColumn]], list[CatalogColumn]]:
    return lambda columns: [column for column in columns if column.name != name]


def as_text(name: str) -> Callable[[list[CatalogColumn]], list[CatalogColumn]]:
    def change(columns: list[CatalogColumn]) -> list[CatalogColumn]:
        text = {name: {"type": "string"}}
        return [msgspec.structs.replace(c, **text.get(c.name, {})) for c in columns]

    return change


def last_first(columns: list[CatalogColumn]) -> list[CatalogColumn]:
    return [columns[-1], *columns[:-1]]


def one_more(columns: list[CatalogColumn]) -> list[CatalogColumn]:
    return [*columns, CatalogColumn("notes", "string")]


def file_of(checked: Checked, values: tuple[str, ...]) -> str:
    location = checked.runs.partitions("track_order")[values].location
    return checked.runs.storage.files(location)[0].path


def write(checked: Checked, path: str, table: pa.Table) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, store_schema=False)
    checked.runs.storage.write(path, sink.getvalue().to_pybytes())


def in_floats(checked: Checked) -> None:
    """Somebody wrote a file anew, with numbers as floats."""
    path = file_of(checked, SEVEN)
    with checked.runs.storage.open_input(path) as stream:
        rows = pq.ParquetFile(stream).read()
    at = rows.column_names.index("properties_n")
    floats = rows["properties_n"].cast(pa.float64())
    write(checked, path, rows.set_column(at, "properties_n", floats))


def one_file_more(checked: Checked) -> None:
    data = checked.runs.storage.read(file_of(checked, SEVEN)) or b""
    checked.runs.storage.write(f"{ORDERS}/day=2026-10-01/hr=07/mine.parquet", data)


BROKEN: dict[str, tuple[Callable[[Checked], object], dict[str, list[str]]]] = {
    "a column gone from the catalog": (
        lambda lake: lake.hand.columns("track_order", without("properties_n")),
        {"track_order.drift": ["properties_n bigint is not in the catalog"]},
    ),
    "a column of another type": (
        lambda lake: lake.hand.columns("track_order", as_text("properties_n")),
        {"track_order.drift": ["properties_n is string in the catalog, bigint in the schema"]},
    ),
    "a column of somebody else": (
        lambda lake: lake.hand.columns("track_order", one_more),
        {"track_order.drift": ["notes string is in the catalog, but not in the schema"]},
    ),
    "columns in another order": (
        lambda lake: lake.hand.columns("track_order", last_first),
        {
            "track_order.drift": [
                "properties_coupon has another position in the catalog than in the schema"
            ]
        },
    ),
    "a table that points elsewhere": (
        lambda lake: lake.hand.move("track_order", "segment-data/data/S1/elsewhere"),
        {"track_order.drift": [f"location segment-data/data/S1/elsewhere, published: {ORDERS}"]},
    ),
    "a partition no longer registered": (
        lambda lake: lake.hand.unregister("track_order", SEVEN),
        {"track_order.partitions": ["the registered partitions have 3 rows, 4 were published"]},
    ),
    "a partition registered by hand": (
        lambda lake: lake.hand.register("track_order", ("2026-10-03", "00"), "somewhere"),
        {"track_order.partitions": ["day=2026-10-03/hr=00 was not registered by the lake"]},
    ),
    "a partition that points to files of another": (
        lambda lake: lake.hand.move_partition(
            "track_order", SEVEN, f"{ORDERS}/day=2026-10-02/hr=00"
        ),
        {
            "track_order.partitions": [
                f"day=2026-10-01/hr=07 is in {ORDERS}/day=2026-10-02/hr=00, which is no folder of "
                "this partition",
                "*bytes*",
            ]
        },
    ),
    "a file gone": (
        lambda lake: lake.runs.storage.delete(file_of(lake, EIGHT)),
        {"track_order.partitions": ["day=2026-10-01/hr=08: 1 file in its folder, 2 published"]},
    ),
    "a file too many": (
        one_file_more,
        {"track_order.partitions": ["day=2026-10-01/hr=07: 2 files in its folder, 1 published"]},
    ),
    "a file cut off": (
        lambda lake: lake.runs.storage.write(file_of(lake, NEXT_DAY), b"PAR1 and no more"),
        {"track_order.partitions": ["*cannot be read: *", "*16 bytes in its files, *"]},
    ),
    "a file with other types": (
        in_floats,
        {
            "track_order.drift": ["*properties_n: double in the file, int64 in the table"],
            "track_order.partitions": ["*bytes in its files, *"],
        },
    ),
}


_PUBLISHED = f"(manifest 1 put it into {ORDERS}/day=2026-10-01/hr=07, 1 file, 1 row)"
IN_GLUE: dict[str, dict[str, list[str]]] = {
    "a partition no longer registered": {
        "track_order.partitions": [
            f"day=2026-10-01/hr=07 is not registered {_PUBLISHED}",
            "the registered partitions have 3 rows, 4 were published",
        ]
    },
    "a partition that points to files of another": {
        "track_order.partitions": [
            f"day=2026-10-01/hr=07 is registered with {ORDERS}/day=2026-10-02/hr=00, 1 file, "
            f"1 row {_PUBLISHED}"
        ]
    },
}
"""What is found there, where the embedded catalog is the state itself."""


@pytest.mark.parametrize("broken", BROKEN)
def test_what_is_broken_is_found_and_named(checked: Checked, broken: str) -> None:
    assert checked.failed() == {}
    break_and_find(checked, broken)
    assert checked.waited == 0


def break_and_find(checked: Checked, broken: str) -> None:
    break_it, expected = BROKEN[broken]
    if checked.runs.catalog.follows:
        expected = IN_GLUE.get(broken, expected)
    break_it(checked)
    found = checked.failed()
    assert found.keys() == expected.keys(), broken
    for check, problems in expected.items():
        assert len(found[check]) == len(problems), found[check]
        for problem, wanted in zip(found[check], problems, strict=True):
            parts = wanted.split("*")
            assert problem == wanted or (len(parts) > 1 and all(part in problem for part in parts))


def test_the_same_is_found_in_glue_and_mended(empty_on_glue: Checked) -> None:
    """One after the other, since a lake on S3 takes its time."""
    checked = with_history(empty_on_glue)
    before = catalog_entries(checked.runs)
    for broken in (name for name in BROKEN if "file " not in name):
        break_and_find(checked, broken)
        assert mend(checked)
        assert checked.failed() == {}, broken
    assert columns_and_places(catalog_entries(checked.runs)) == columns_and_places(before)
    break_and_find(checked, "a file gone")
    checked.runs.replay("2026-10-01", "2026-10-02")
    assert checked.failed() == {}


def test_a_table_dropped_from_the_catalog_is_missed_by_both_checks(checked: Checked) -> None:
    checked.hand.drop("track_order")
    found = checked.failed()
    assert found["track_order.drift"] == ["the table is not in the catalog"]
    assert found["track_order.partitions"][-1] == (
        "the registered partitions have 0 rows, 4 were published"
    )
    assert found.keys() == {"track_order.drift", "track_order.partitions"}


def half_published(checked: Checked) -> Callable[[], Any]:
    """A commit that nothing follows yet; the way to finish it."""
    runs = checked.runs
    storage, state = runs.storage, read_state(runs.storage, SOURCE_ID)
    partition = runs.partitions("track_order")[SEVEN]
    runs.load("2026-10-03", order("m6", "2026-10-01T07:10", n=5), name="c")
    assert runs.partitions("track_order")[SEVEN] != partition

    storage.write(paths.state_file(SOURCE_ID), encode(state))
    checked.hand.unregister("track_order", SEVEN)
    return lambda: catch_up(storage, runs.catalog, SOURCE_ID)


def test_checks_during_a_publication_are_repeated(checked: Checked) -> None:
    finish = half_published(checked)
    results = checked.results(meanwhile=finish)
    assert results["track_order", "partitions"].passed
    assert checked.waited == 1


def test_an_unfinished_commit_is_reported_after_a_while(checked: Checked) -> None:
    half_published(checked)
    found = checked.results()["track_order", "partitions"]
    assert "(manifest 3 put it into" in found.evidence["first_problems"][0]
    assert checked.waited == 10
    assert checked.results()["identify", "partitions"].passed


@given(st.integers(0, 3_000), st.integers(2, 500), st.integers(0, 800_000))
def test_the_newest_always_and_all_the_others_in_turn(items: int, share: int, turn: int) -> None:
    everything = range(items)
    newest = set(everything[-(share // 2) :])
    seen: set[int] = set()
    for one in range(turn, turn + slices(items, share)):
        found = sample(everything, share, one)
        assert len(found) <= share
        assert found == sorted(set(found))
        assert newest <= set(found)
        seen |= set(found)
    assert seen == set(everything)


@given(st.integers(0, PARTITIONS_AT_MOST // 4))
def test_many_tables_share_their_reads(tables: int) -> None:
    assert share_of(tables) >= 4
    assert share_of(tables) * tables <= PARTITIONS_AT_MOST


@pytest.mark.parametrize("broken", [name for name in BROKEN if "file " not in name])
def test_what_was_broken_by_hand_is_mended(checked: Checked, broken: str) -> None:
    before = catalog_entries(checked.runs)
    BROKEN[broken][0](checked)
    assert mend(checked)
    assert checked.failed() == {}
    assert columns_and_places(catalog_entries(checked.runs)) == columns_and_places(before)
    assert not mend(checked)


def test_runs_continue_after_it(checked: Checked) -> None:
    checked.hand.unregister("track_order", ("2026-10-01", "07"))
    mend(checked)
    checked.runs.load(
        "2026-10-04", order("m8", "2026-10-01T07:40", n=8), order("m1", "2026-10-04", n=1), name="d"
    )
    checked.runs.replay("2026-10-01", "2026-10-02")
    assert checked.failed() == {}
    assert checked.runs.ids("track_order") == ["m1", "m2", "m4", "m5", "m8"]


def test_for_pruned_manifests_the_catalog_is_trusted(checked: Checked) -> None:
    """Years later only the last manifests are kept; what is lost besides is told."""
    runs = checked.runs
    note_pruned(runs.storage, "S1", 1)
    runs.storage.delete(paths.manifest("S1", 1))
    checked.hand.unregister("track_order", ("2026-10-02", "00"))
    mended = mend(checked)
    assert (mended.registered, mended.lost_rows) == ({"shop.track_order": 1}, {})
    assert checked.failed() == {}
    checked.hand.unregister("track_order", ("2026-10-01", "07"))
    assert mend(checked).lost_rows == {"shop.track_order": 1}
    assert checked.failed() == {
        "track_order.partitions": ["the registered partitions have 3 rows, 4 were published"]
    }


def test_without_all_manifests_nothing_is_guessed(checked: Checked) -> None:
    checked.runs.storage.delete(paths.manifest("S1", 1))
    before = catalog_entries(checked.runs)
    with pytest.raises(StateError, match="Manifest 1 of source S1 is missing"):
        mend(checked)
    assert catalog_entries(checked.runs) == before


def test_new_columns_have_their_run(checked: Checked, monkeypatch: pytest.MonkeyPatch) -> None:
    young = checked.results()["track_order", "schema_change"]
    assert young.passed  # the second run added a column within a day of the first

    monkeypatch.setattr(clock, "read", lambda: datetime.now(UTC) + timedelta(days=1))
    line = order("m6", "2026-10-03T07:00", gift=True, weight=1.25)
    checked.runs.load("2026-10-03", line, page("m7", "2026-10-03T07:00"), name="c")
    last = read_manifest(checked.runs.storage, "S1", 3)
    assert last is not None
    at = made(last)
    results = checked.results(at + timedelta(hours=1))

    orders, pages = results["track_order", "schema_change"], results["page", "schema_change"]
    assert not orders.passed and orders.severity is Severity.WARN
    run = f"(run R3, {at:%Y-%m-%d %H:%M})"
    assert orders.evidence["first_problems"] == (
        f"properties_gift boolean, properties_weight decimal(38,6) {run}",
    )
    assert orders.evidence["new_columns"] == 2
    assert pages.passed
    assert results["identify", "schema_change"].evidence["new_columns"] == 0
    assert results["identify", "schema_change"].evidence["columns"] == 17

    later = checked.results(at + timedelta(hours=25))
    assert all(later[table, "schema_change"].passed for table in ("track_order", "page"))


def test_what_the_first_run_of_a_source_makes_is_no_change(empty: Checked) -> None:
    for day in ("2026-10-01", "2026-10-02", "2026-10-03"):
        name = f"Event {day[-1]}"
        empty.runs.archive.day(day).file("a", track(name, f"m{day}", f"{day}T07:00"))
    empty.runs.sync()
    assert empty.runs.state().manifest == 3
    assert all(result.passed for result in empty.results().values())


REPORT = TableReport("page", "page", rows_in=2, row_count=2)


def verdicts(shadow: LoadedFile | None) -> dict[str, bool]:
    file = LoadedFile("page", "day=2026-10-01", "a.parquet", rows=2, shadow=shadow)
    results = check_table("shop.page", REPORT, [file], TableIds(kept=2), 7)
    return {result.check: result.passed for result in results}


def test_a_shadow_must_have_the_rows_of_its_file_and_the_requested_types() -> None:
    good = LoadedFile("page", "day=2026-10-01", "b.parquet", rows=2)
    assert verdicts(None) == verdicts(good) == {"dedup": True, "types": True, "conservation": True}
    fewer = LoadedFile("page", "day=2026-10-01", "b.parquet", rows=1)
    assert verdicts(fewer) == {"dedup": True, "types": True, "conservation": False}
    wrong = LoadedFile("page", "day=2026-10-01", "b.parquet", rows=2, type_problems=("n: int64",))
    assert verdicts(wrong) == {"dedup": True, "types": False, "conservation": True}


MB = 1_000_000
PAGE = TableSchema("page", "shop", "page", "page", ())


def partition(hr: str, files: int, size: int, day: str = "2026-10-01") -> CatalogPartition:
    return CatalogPartition((day, hr), f"place/{hr}", 1, 10, size, files)


def check(
    *partitions: CatalogPartition,
    now: str = "2026-10-03",
    recent: int | None = None,
    **settings: Any,
) -> CheckResult:
    source = Source(id="S1", slug="shop", **settings)
    return check_small_files(source, PAGE, DatePartition.DAY_HOUR, partitions, utc(now), recent)


@pytest.mark.parametrize(
    ("files", "size", "passes"),
    [
        (2, 2 * MB, True),  # small, but few
        (3, 3 * MB, False),
        (3, 3 * 64 * MB - 1, False),
        (3, 3 * 64 * MB, True),  # many, but large
        (1, 1, True),
        (0, 0, True),
    ],
)
def test_many_and_small_together_are_too_much(files: int, size: int, passes: bool) -> None:
    assert check(partition("07", files, size)).passed is passes


def test_recent_days_and_partitions_wait_for_the_next_upkeep() -> None:
    assert check(partition("07", 9, 9), now="2026-10-02T23:59").passed
    assert not check(partition("07", 9, 9), now="2026-10-03").passed
    assert check(partition("07", 9, 9), now="2026-10-03", compaction={"after_days": 2}).passed
    found = msgspec.structs.replace(partition("07", 9, 9), version=5)
    assert [check(found, recent=recent).passed for recent in (5, 6)] == [True, False]


def test_the_metadata_have_counts_and_a_remedy() -> None:
    result = check(partition("07", 2, 4000), partition("08", 10, 5000), partition("09", 20, 3000))
    assert result.severity is Severity.WARN
    assert result.evidence.pop("what_to_do").startswith("The job `upkeep_shop` and `datalake upkee")
    assert result.evidence == {
        "problems": 2,
        "partitions": 3,
        "files": 32,
        "most_files_in_a_partition": 20,
        "average_bytes": 375,
        "files_to_save": 28,
        "first_problems": (
            "2026-10-01/09: 20 files of 150 B on average",
            "2026-10-01/08: 10 files of 500 B on average",
        ),
    }
    disabled = check(partition("07", 9, 9), compaction={"enabled": False})
    assert disabled.evidence["what_to_do"].startswith("Set `compaction.enabled: true`. ")
