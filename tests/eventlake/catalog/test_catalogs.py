"""Both catalogs: same tables, same types, same results for repeated calls."""

from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eventlake.catalog.base import Catalog, CatalogColumn, CatalogPartition, CatalogTable
from eventlake.catalog.glue import GlueCatalog
from eventlake.catalog.local import LocalCatalog
from eventlake.catalog.sync_records import SYNC_RECORDS, ensure_own_tables
from eventlake.catalog.sync_reports import COLUMNS, SYNC_REPORTS
from eventlake.rules.errors import StateError
from eventlake.sql.scan import arrow_type
from eventlake.storage import LocalStorage
from tests.support.catalogs.by_hand import HOUR, ORDERS, at, locations


def test_an_empty_lake_has_an_empty_catalog(empty_catalog: Catalog) -> None:
    assert empty_catalog.databases() == []
    assert empty_catalog.tables("shop") == []
    assert empty_catalog.table("shop", "track_order") is None


def test_a_table_is_created_once_and_read_as_it_was_created(catalog: Catalog) -> None:
    assert catalog.databases() == ["shop"]
    assert catalog.tables("shop") == [ORDERS]
    assert catalog.table("shop", "track_order") == ORDERS
    assert catalog.partitions("shop", "track_order") == []
    other = CatalogTable("shop", "track_order", (), ("day",), "elsewhere")
    assert catalog.create_table(other) is False
    catalog.ensure_database("shop")
    assert catalog.table("shop", "track_order") == ORDERS
    before = catalog.count_databases()  # metastores have one of their own
    catalog.ensure_database("more")
    catalog.ensure_database("shop")
    assert catalog.count_databases() == before + 1
    assert catalog.names("shop") == {"track_order"}
    assert catalog.names("elsewhere") is None


def test_new_columns_go_to_the_end_and_known_ones_keep_place_and_type(catalog: Catalog) -> None:
    price = CatalogColumn("price", "decimal(38,6)", "/properties/price")
    new = [price, CatalogColumn("message_id", "bigint"), CatalogColumn("at", "timestamp")]
    catalog.append_columns("shop", "track_order", new)
    catalog.append_columns("shop", "track_order", reversed(new))
    table = catalog.table("shop", "track_order")
    assert table is not None
    types = [(column.name, column.type) for column in table.columns]
    assert types == [("message_id", "string"), ("price", "decimal(38,6)"), ("at", "timestamp")]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([("first", 1), ("moved", 2)], [at("moved", 2)]),
        ([("moved", 2), ("late", 1)], [at("moved", 2)]),
        ([("first", 1), ("corrected", 1)], [at("corrected", 1)]),  # the same manifest again
        ([("first", 1), ("", 3), ("late", 2)], []),
        ([("first", 1), ("", 3), ("late", 2), ("again", 4)], [at("again", 4)]),
        ([("", 2), ("late", 1)], []),
        ([("newer", 2), ("", 1)], [at("newer", 2)]),
    ],
)
def test_the_latest_manifest_decides_where_a_partition_is(
    catalog: Catalog, steps: list[tuple[str, int]], expected: list[CatalogPartition]
) -> None:
    """Each step puts the partition to a location, or drops it."""
    for location, version in steps:
        if location:
            catalog.put_partitions("shop", "track_order", [at(location, version)])
        else:
            catalog.drop_partitions("shop", "track_order", [list(HOUR)], version)
    assert catalog.partitions("shop", "track_order") == expected


@pytest.mark.parametrize(
    ("keys", "values", "day"),
    [
        (("day", "hr"), ("2026-10-31", "23"), "2026-10-31"),
        (("year", "month", "day", "hr"), ("2026", "10", "31", "23"), "2026-10-31"),
        (("year", "month", "day"), ("2026", "10", "31"), "2026-10-31"),
        (("day",), ("2026-10-31",), "2026-10-31"),
        (("source_id", "day"), ("S1", "2026-10-31"), "2026-10-31"),
    ],
)
def test_partitions_are_found_by_day_in_every_layout(
    catalog: Catalog, keys: tuple[str, ...], values: tuple[str, ...], day: str
) -> None:
    catalog.create_table(CatalogTable("shop", "t", (), keys, "t"))
    catalog.put_partitions("shop", "t", [at("here", 1, values)])
    assert len(catalog.partitions("shop", "t", (day, day))) == 1
    assert catalog.partitions("shop", "t", ("2026-10-01", "2026-10-30")) == []
    assert catalog.partitions("shop", "t", ("2026-11-01", "2026-11-30")) == []
    assert len(catalog.partitions("shop", "t", ("2026-09-15", "2026-11-15"))) == 1


def test_partitions_come_in_the_order_of_their_values(catalog: Catalog) -> None:
    days = ["2026-11-01", "2026-09-30", "2026-10-02"]
    catalog.put_partitions("shop", "track_order", [at(d, 1, (d, "00")) for d in days])
    assert locations(catalog) == sorted(days)


def test_many_tables_are_made_and_filled_each_for_itself(catalog: Catalog) -> None:
    names = ["a", "track_order", "b"]
    tables = [msgspec.structs.replace(ORDERS, name=name) for name in names]
    assert catalog.create_tables(tables) == [True, False, True]
    assert [table.name for table in catalog.tables("shop")] == ["a", "b", "track_order"]
    catalog.put_partitions("shop", "b", [at("later", 3)])
    next_month = ("2026-11-01", "00")
    first = [at("first", 1), at("next", 1, next_month)]
    catalog.put_all(
        {("shop", "a"): first, ("shop", "b"): [at("late", 2)], ("shop", "track_order"): []}
    )
    found = {name: [p.location for p in catalog.partitions("shop", name)] for name in names}
    assert found == {"a": ["first", "next"], "b": ["later"], "track_order": []}
    with pytest.raises(StateError, match=r"shop\.nope is not in the catalog"):
        catalog.put_all({("shop", "a"): [at("x", 4)], ("shop", "nope"): [at("x", 4)]})
    assert catalog.create_tables([]) == []
    catalog.put_all({})


def test_changing_a_table_that_does_not_exist_is_refused(catalog: Catalog) -> None:
    with pytest.raises(StateError, match=r"shop\.nope is not in the catalog"):
        catalog.put_partitions("shop", "nope", [at("x", 1)])
    with pytest.raises(StateError, match=r"shop\.nope is not in the catalog"):
        catalog.append_columns("shop", "nope", [])
    assert [table.name for table in catalog.tables("shop")] == ["track_order"]


def test_appliers_of_one_table_lose_nothing_of_each_other(catalog: Catalog) -> None:
    def apply(day: str) -> None:
        for hour in range(4):
            values = (day, f"{hour:02}")
            catalog.put_partitions("shop", "track_order", [at("/".join(values), 1, values)])
            new = CatalogColumn(f"c_{day[-2:]}_{hour}", "string")
            catalog.append_columns("shop", "track_order", [new])

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(apply, ["2026-10-01", "2026-10-02", "2026-10-03"]))
    table = catalog.table("shop", "track_order")
    assert table is not None
    assert len({column.name for column in table.columns}) == len(table.columns) == 1 + 12
    assert len(locations(catalog)) == 12


def test_hundreds_of_partitions_come_and_move_and_go(catalog: Catalog) -> None:
    hours = [(f"2026-10-{day:02}", f"{hour:02}") for day in range(1, 12) for hour in range(24)]
    old = [at("/".join(hour), 1, hour) for hour in hours[:250]]
    new = [at(f"new/{'/'.join(hour)}", 2, hour) for hour in hours]
    catalog.put_partitions("shop", "track_order", old)
    assert catalog.partitions("shop", "track_order") == old
    catalog.put_partitions("shop", "track_order", new)
    assert catalog.partitions("shop", "track_order") == new
    assert catalog.partitions("shop", "track_order", ("2026-10-03", "2026-10-04")) == new[48:96]
    catalog.drop_partitions("shop", "track_order", hours[:60], 3)
    assert catalog.partitions("shop", "track_order") == new[60:]


def test_a_comment_that_does_not_fit_is_restored(catalog: Catalog) -> None:
    long, odd = "/properties/" + "é" * 300, "/properties/a\nb\u0000"
    told = CatalogTable(
        database="shop",
        name="track_long",
        columns=(CatalogColumn("long", "string", long), CatalogColumn("odd", "string", odd)),
        partition_keys=("day",),
        location="long",
        comment="L\u0001" + "o" * 3000 + "ng",
    )
    catalog.create_table(told)
    catalog.append_columns("shop", "track_long", [CatalogColumn("more", "string", long + "/x")])
    table = catalog.table("shop", "track_long")
    assert table is not None
    assert [column.comment for column in table.columns] == [long, odd, long + "/x"]
    assert table.comment == told.comment


HOURS = [("2026-09-30", "23"), ("2026-10-01", "00"), ("2026-10-01", "01")]
POOL = ["a", "b", "c"]


class Applied(msgspec.Struct, frozen=True):
    """What a manifest says of one table."""

    columns: frozenset[str] = frozenset()
    put: frozenset[int] = frozenset()  # of the hours
    dropped: frozenset[int] = frozenset()
    type: str | None = None  # of all columns, with all partitions


hours = st.frozensets(st.sampled_from(range(len(HOURS))))
manifests = st.lists(
    st.builds(
        Applied,
        columns=st.frozensets(st.sampled_from(POOL)),
        put=hours,
        dropped=hours,
        type=st.none() | st.sampled_from(["bigint", "string"]),
    ),
    min_size=1,
    max_size=4,
)
_names = count()


def apply(catalog: Catalog, name: str, number: int, told: Applied) -> None:
    """As publication does it: columns, then the partitions, then those that are gone."""
    columns = [CatalogColumn(column, "string") for column in sorted(told.columns)]
    catalog.append_columns("shop", name, columns)
    put = [
        CatalogPartition(HOURS[hour], f"{number}/{hour}", number, number, number, 1)
        for hour in sorted(told.put - told.dropped)
    ]
    if told.type:
        catalog.retype("shop", name, dict.fromkeys(POOL, told.type), put, number)
    else:
        catalog.put_partitions("shop", name, put)
    if told.dropped:
        catalog.drop_partitions("shop", name, [HOURS[hour] for hour in told.dropped], number)


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(manifests, st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=3))
def test_late_repeats_leave_what_the_manifests_in_order_leave(
    tmp_path: Path, glue_catalog: GlueCatalog, told: list[Applied], repeats: list[tuple[int, int]]
) -> None:
    name = f"track_{next(_names)}"
    local = LocalCatalog(LocalStorage(str(tmp_path)))
    again = {after: {n for a, n in repeats if a == after and n < a} for after, _ in repeats}
    for catalog, late in ((local, False), (glue_catalog, True)):
        catalog.ensure_database("shop")
        catalog.create_table(msgspec.structs.replace(ORDERS, name=name))
        for number, manifest in enumerate(told, start=1):
            apply(catalog, name, number, manifest)
            for earlier in sorted(again.get(number - 1, ())) if late else ():
                apply(catalog, name, earlier + 1, told[earlier])
    assert glue_catalog.table("shop", name) == local.table("shop", name)
    assert glue_catalog.partitions("shop", name) == local.partitions("shop", name)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bigint", pa.int64()),
        ("decimal(38,6)", pa.decimal128(38, 6)),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("double", pa.float64()),
        ("int", pa.int32()),
        ("date", pa.date32()),
        ("varchar(10)", pa.string()),
        ("decimal(10, 2)", pa.decimal128(10, 2)),
        ("array<map<string,string>>", pa.list_(pa.map_(pa.string(), pa.string()))),
        ("map<string,decimal(38,6)>", pa.map_(pa.string(), pa.decimal128(38, 6))),
        (
            "array<struct<name:string,counts:map<string,bigint>>>",
            pa.list_(
                pa.struct([("name", pa.string()), ("counts", pa.map_(pa.string(), pa.int64()))])
            ),
        ),
    ],
)
def test_types_are_understood(text: str, expected: pa.DataType) -> None:
    assert arrow_type(text) == expected


@pytest.mark.parametrize("text", ["uniontype<int>", "array<interval>", "decimal", ""])
def test_other_types_are_refused(text: str) -> None:
    with pytest.raises(StateError, match="known are bigint, boolean"):
        arrow_type(text)


def test_every_column_of_the_reports_is_of_a_known_type() -> None:
    assert len([arrow_type(column.type) for column in COLUMNS]) == 20 + 14


def test_it_is_made_once(empty_catalog: Catalog) -> None:
    ensure_own_tables(empty_catalog)
    ensure_own_tables(empty_catalog)
    assert empty_catalog.databases() == ["__segment_datalake"]
    assert empty_catalog.tables("__segment_datalake") == [SYNC_RECORDS, SYNC_REPORTS]


def test_a_table_of_an_earlier_version_gets_the_new_columns(empty_catalog: Catalog) -> None:
    earlier = msgspec.structs.replace(SYNC_REPORTS, columns=SYNC_REPORTS.columns[:20])
    empty_catalog.ensure_database("__segment_datalake")
    empty_catalog.create_table(earlier)
    ensure_own_tables(empty_catalog)
    assert empty_catalog.table("__segment_datalake", "sync_reports") == SYNC_REPORTS
