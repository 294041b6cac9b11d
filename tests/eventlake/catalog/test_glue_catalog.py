"""The catalog in Glue, and runs on it."""

import copy
from pathlib import Path
from typing import Any

import pytest
from moto.core.responses import ActionResult

from eventlake.aws.access import AwsAccess
from eventlake.catalog.base import CatalogColumn, CatalogTable
from eventlake.catalog.glue import GlueCatalog
from eventlake.catalog.sync_records import SYNC_RECORDS, ensure_own_tables
from eventlake.catalog.sync_reports import DATABASE, NAME, SYNC_REPORTS
from eventlake.rules.errors import InsufficientPermissions, InvalidSetting
from eventlake.sql import LakeSql
from tests.support.catalogs.by_hand import HOUR, ORDERS, at, locations
from tests.support.lakes.glue_runs import PLACE, GlueRuns, catalog_entries, story
from tests.support.lakes.runs import Runs
from tests.support.servers.aws import ACCOUNT, AwsServer
from tests.support.servers.glue import StrictGlue, momentary, refusal, strict_glue

PRICE = CatalogColumn("price", "decimal(38,6)", "/properties/price")
TITLE = CatalogColumn("title", "string", "/properties/title")


TIMES = ("UpdateTime", "VersionId")


IN_TABLE = {"DatabaseName": "shop", "TableName": "track_order"}


@pytest.fixture
def catalog(glue_catalog: GlueCatalog) -> GlueCatalog:
    glue_catalog.ensure_database("shop")
    glue_catalog.create_table(ORDERS)
    return glue_catalog


def table(glue: StrictGlue) -> dict[str, Any]:
    """The table as Glue has it."""
    found: dict[str, Any] = glue.client.get_table(DatabaseName="shop", Name="track_order")
    return found["Table"]


def edit(glue: StrictGlue, **changes: Any) -> None:
    """What a person does to the table in the console."""
    now = table(glue)
    known = glue.client.meta.service_model.shape_for("TableInput").members
    wanted = {key: value for key, value in now.items() if key in known} | changes
    glue.client.update_table(DatabaseName="shop", TableInput=wanted)


def columns(glue: StrictGlue) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table(glue)["StorageDescriptor"]["Columns"]
    return found


def edit_columns(glue: StrictGlue, columns: list[dict[str, Any]]) -> None:
    edit(glue, StorageDescriptor={**table(glue)["StorageDescriptor"], "Columns": columns})


def partition(glue: StrictGlue, values: tuple[str, ...] = HOUR) -> dict[str, Any]:
    answer = glue.client.get_partition(**IN_TABLE, PartitionValues=list(values))
    found: dict[str, Any] = answer["Partition"]
    return found


def test_a_table_has_what_readers_expect(catalog: GlueCatalog, glue: StrictGlue) -> None:
    made = table(glue)
    assert made["TableType"] == "EXTERNAL_TABLE"
    assert made["Description"] == "Order"
    assert made["PartitionKeys"] == [{"Name": key, "Type": "string"} for key in ("day", "hr")]
    assert made["Parameters"] == {"EXTERNAL": "TRUE", "classification": "parquet"}
    assert made["StorageDescriptor"] == {
        "Columns": [{"Name": "message_id", "Type": "string", "Comment": "/messageId"}],
        "Location": f"{PLACE}/segment-data/data/S1/segment_type=track_order/",
        "InputFormat": "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
        "OutputFormat": "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
        "SerdeInfo": {
            "SerializationLibrary": "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
            "Parameters": {"serialization.format": "1"},
        },
    }
    catalog.put_partitions("shop", "track_order", [at("some/folder", 4)])
    made_partition = partition(glue)
    sizes = {"numRows": "3", "totalSize": "100", "numFiles": "1"}
    assert made_partition["Parameters"] == {"datalake.version": "4", **sizes}
    stored = made["StorageDescriptor"] | {"Location": f"{PLACE}/some/folder/"}
    assert made_partition["StorageDescriptor"] == stored


def test_the_table_of_reports_is_read_as_json(glue_catalog: GlueCatalog, glue: StrictGlue) -> None:
    ensure_own_tables(glue_catalog)
    ensure_own_tables(glue_catalog)
    assert glue_catalog.tables("__segment_datalake") == [SYNC_RECORDS, SYNC_REPORTS]
    made = glue.client.get_table(DatabaseName="__segment_datalake", Name="sync_reports")["Table"]
    stored = made["StorageDescriptor"]
    assert stored["SerdeInfo"]["SerializationLibrary"] == "org.openx.data.jsonserde.JsonSerDe"
    assert stored["InputFormat"] == "org.apache.hadoop.mapred.TextInputFormat"
    types = {column["Name"]: column["Type"] for column in stored["Columns"]}
    assert types["partitions"] == "array<map<string,string>>"
    assert types["new_columns"] == "array<struct<name:string,type:string>>"
    assert [key["Name"] for key in made["PartitionKeys"]] == ["source_id", "day"]
    assert glue.count("update_table") == 0


def test_a_database_is_made_once(catalog: GlueCatalog, glue: StrictGlue) -> None:
    glue.before("create_database", momentary("AccessDeniedException"))
    catalog.ensure_database("shop")
    with pytest.raises(InsufficientPermissions, match="glue:CreateDatabase"):
        catalog.ensure_database("elsewhere")
    glue.before("create_database", lambda: make_database(glue, "elsewhere"))
    catalog.ensure_database("elsewhere")


def make_database(glue: StrictGlue, name: str) -> None:
    """Somebody else is faster."""
    glue.client.create_database(DatabaseInput={"Name": name})


def test_only_databases_of_the_lake_are_listed(catalog: GlueCatalog, glue: StrictGlue) -> None:
    for name in ("finance", "web"):
        make_database(glue, name)
    assert catalog.databases() == ["shop"]
    named = GlueCatalog(catalog.place, catalog.access, ACCOUNT, named=("web", "not_made_yet"))
    assert named.databases() == ["shop", "web"]
    other_lake = GlueCatalog("s3://other-bucket", catalog.access)
    assert other_lake.databases() == []
    assert catalog.count_databases() == 3


def test_every_call_has_the_id_of_the_catalog(catalog: GlueCatalog, glue: StrictGlue) -> None:
    catalog.put_partitions("shop", "track_order", [at("first", 1)])
    catalog.append_columns("shop", "track_order", [PRICE])
    catalog.drop_partitions("shop", "track_order", [HOUR], 2)
    catalog.partitions("shop", "track_order")
    catalog.tables("shop")
    catalog.databases()
    assert {request["CatalogId"] for _, request in glue.asked} == {ACCOUNT}


def test_columns_are_added_without_old_versions(catalog: GlueCatalog, glue: StrictGlue) -> None:
    catalog.append_columns("shop", "track_order", [PRICE, TITLE])
    catalog.append_columns("shop", "track_order", [PRICE, TITLE])
    [update] = [request for name, request in glue.asked if name == "update_table"]
    assert (update["VersionId"], update["SkipArchive"]) == ("1", True)
    versions = glue.client.get_table_versions(**IN_TABLE)
    assert [version["VersionId"] for version in versions["TableVersions"]] == ["2"]


def test_comments_and_parameters_of_others_stay(catalog: GlueCatalog, glue: StrictGlue) -> None:
    pii = {"Parameters": {"pii": "no"}}
    ours = {"Name": "message_id", "Type": "string", "Comment": "Unique"} | pii
    theirs = {"Name": "score", "Type": "double", "Parameters": {"unit": "points"}}
    edit(
        glue,
        Description="All orders, see the handbook",
        Owner="finance",
        Retention=365,
        Parameters={**table(glue)["Parameters"], "team": "finance"},
        StorageDescriptor=table(glue)["StorageDescriptor"]
        | {"Columns": [ours, theirs], "SortColumns": [{"Column": "message_id", "SortOrder": 1}]},
    )
    before = table(glue)
    catalog.append_columns("shop", "track_order", [PRICE])
    catalog.put_partitions("shop", "track_order", [at("first", 1)])
    catalog.drop_partitions("shop", "track_order", [HOUR], 2)
    catalog.retype("shop", "track_order", {"price": "string"}, [], 3)
    after = table(glue)
    expected = copy.deepcopy(before)
    price = {"Name": "price", "Type": "string", "Comment": "/properties/price"}
    expected["StorageDescriptor"]["Columns"].append(price)
    expected["Parameters"] |= {"datalake.dropped": "2", "datalake.retyped": "3"}
    assert after | dict.fromkeys(TIMES) == expected | dict.fromkeys(TIMES)
    seen = catalog.table("shop", "track_order")
    assert seen is not None
    comments = [(column.name, column.comment) for column in seen.columns]
    assert comments == [("message_id", "Unique"), ("score", ""), ("price", "/properties/price")]


def test_an_edited_comment_is_kept(catalog: GlueCatalog, glue: StrictGlue) -> None:
    catalog.append_columns("shop", "track_order", [CatalogColumn("n", "bigint", "/" + "n" * 300)])
    *others, cut = columns(glue)
    assert len(cut["Comment"].encode()) == 255
    edit_columns(glue, [*others, {**cut, "Comment": "How many"}])
    seen = catalog.table("shop", "track_order")
    assert seen is not None
    assert seen.columns[-1].comment == "How many"


def test_a_concurrently_edited_comment_is_kept(catalog: GlueCatalog, glue: StrictGlue) -> None:
    def comment() -> None:
        edit_columns(glue, [{"Name": "message_id", "Type": "string", "Comment": "Unique"}])

    glue.before("update_table", comment)
    catalog.append_columns("shop", "track_order", [PRICE])
    comments = [(column["Name"], column["Comment"]) for column in columns(glue)]
    assert comments == [("message_id", "Unique"), ("price", "/properties/price")]
    edited, refused, ours = [told for name, told in glue.asked if name == "update_table"][-3:]
    assert [t.get("VersionId") for t in (edited, refused, ours)] == [None, "1", "2"]


@pytest.mark.parametrize(
    "code",
    ["ConcurrentModificationException", "OperationTimeoutException", "ResourceNotReadyException"],
)
def test_busy_glue_is_retried(catalog: GlueCatalog, glue: StrictGlue, code: str) -> None:
    for operation in ("get_table", "update_table", "batch_get_partition", "batch_create_partition"):
        glue.before(operation, momentary(code))
    catalog.append_columns("shop", "track_order", [PRICE])
    catalog.put_partitions("shop", "track_order", [at("first", 1)])
    assert len(columns(glue)) == 2
    assert locations(catalog) == ["first"]


def test_partitions_are_put_in_batches(catalog: GlueCatalog, glue: StrictGlue) -> None:
    hours = [(f"2026-10-{day:02}", f"{hour:02}") for day in range(1, 12) for hour in range(24)]
    wanted = [at("/".join(hour), 1, hour) for hour in hours]
    catalog.put_partitions("shop", "track_order", wanted[:250])
    assert glue.batches("batch_create_partition", "PartitionInputList") == [100, 100, 50]
    catalog.put_partitions("shop", "track_order", wanted[:251])
    assert glue.batches("batch_create_partition", "PartitionInputList")[3:] == [1]
    moved = [at("new", 2, hour) for hour in hours[:120]]
    catalog.put_partitions("shop", "track_order", moved + wanted[120:])
    assert glue.batches("batch_update_partition", "Entries") == [100, 20]
    catalog.drop_partitions("shop", "track_order", hours[:60], 3)
    assert glue.batches("batch_delete_partition", "PartitionsToDelete") == [25, 25, 10]


def test_wide_tables_have_smaller_batches(catalog: GlueCatalog, glue: StrictGlue) -> None:
    wide = [CatalogColumn(f"column_{n}", "string", f"/properties/{n}") for n in range(500)]
    catalog.append_columns("shop", "track_order", wide)
    hours = [("2026-10-01", f"{hour:02}") for hour in range(24)]
    hours += [("2026-10-02", f"{hour:02}") for hour in range(24)]
    catalog.put_partitions("shop", "track_order", [at("here", 1, hour) for hour in hours])
    sizes = glue.batches("batch_create_partition", "PartitionInputList")
    assert len(sizes) > 1
    assert sum(sizes) == 48


def test_an_older_concurrent_partition_is_moved(catalog: GlueCatalog, glue: StrictGlue) -> None:
    other = GlueCatalog(catalog.place, AwsAccess())
    older, newer = ("2026-10-01", "01"), ("2026-10-01", "02")

    def make() -> None:
        partitions = [at("older", 1, older), at("newer", 9, newer)]
        other.put_partitions("shop", "track_order", partitions)

    glue.before("batch_create_partition", make)
    ours = [at("ours", 5, values) for values in (older, newer, HOUR)]
    catalog.put_partitions("shop", "track_order", ours)
    found = {p.values: p.location for p in catalog.partitions("shop", "track_order")}
    assert found == {older: "ours", newer: "newer", HOUR: "ours"}


def test_a_partition_removed_meanwhile_is_made(catalog: GlueCatalog, glue: StrictGlue) -> None:
    catalog.put_partitions("shop", "track_order", [at("first", 1)])

    def remove() -> None:
        glue.client.delete_partition(**IN_TABLE, PartitionValues=list(HOUR))

    glue.before("batch_update_partition", remove)
    catalog.put_partitions("shop", "track_order", [at("moved", 2)])
    assert locations(catalog) == ["moved"]


def test_failed_partitions_are_retried(catalog: GlueCatalog, glue: StrictGlue) -> None:
    def failing(code: str) -> ActionResult:
        detail = {"ErrorCode": code, "ErrorMessage": f"no {code}"}
        return ActionResult({"Errors": [{"PartitionValues": list(HOUR), "ErrorDetail": detail}]})

    glue.before("batch_create_partition", lambda: failing("ThrottlingException"))
    catalog.put_partitions("shop", "track_order", [at("first", 1)])
    assert locations(catalog) == ["first"]
    later = ("2026-10-01", "08")
    glue.before("batch_create_partition", lambda: failing("AccessDeniedException"))
    with pytest.raises(InsufficientPermissions, match="glue:BatchCreatePartition"):
        catalog.put_partitions("shop", "track_order", [at("second", 2, later)])


def test_unprocessed_partitions_are_retried(catalog: GlueCatalog, glue: StrictGlue) -> None:
    catalog.put_partitions("shop", "track_order", [at("first", 1)])
    nothing = {"Partitions": [], "UnprocessedKeys": [{"Values": list(HOUR)}]}
    glue.before("batch_get_partition", lambda: ActionResult(nothing))
    catalog.put_partitions("shop", "track_order", [at("first", 1)])
    assert (glue.count("batch_create_partition"), glue.count("batch_update_partition")) == (1, 0)


def test_wide_partitions_are_read_as_many_at_a_time_as_fit_into_an_answer(
    catalog: GlueCatalog, glue: StrictGlue
) -> None:
    """The pauses before repeated calls are for answers without any partition."""
    hours = [at("day", 1, ("2026-10-01", f"{hour:02}")) for hour in range(24)]
    catalog.put_partitions("shop", "track_order", hours)
    glue.fit = 1
    catalog.put_partitions("shop", "track_order", hours)
    assert glue.count("batch_create_partition") == 1


def test_parameters_of_a_moved_partition_stay(catalog: GlueCatalog, glue: StrictGlue) -> None:
    catalog.put_partitions("shop", "track_order", [at("first", 1)])
    now = partition(glue)
    edited = {
        "Values": list(HOUR),
        "StorageDescriptor": now["StorageDescriptor"] | {"Compressed": True},
        "Parameters": now["Parameters"] | {"checked_by": "finance"},
    }
    glue.client.update_partition(**IN_TABLE, PartitionValueList=list(HOUR), PartitionInput=edited)
    catalog.append_columns("shop", "track_order", [PRICE])
    catalog.put_partitions("shop", "track_order", [at("moved", 2)])
    moved = partition(glue)
    assert moved["Parameters"]["checked_by"] == "finance"
    assert moved["Parameters"]["datalake.version"] == "2"
    assert moved["StorageDescriptor"]["Compressed"] is True
    assert moved["StorageDescriptor"]["Location"].endswith("/prefix/moved/")
    assert [c["Name"] for c in moved["StorageDescriptor"]["Columns"]] == ["message_id", "price"]


def test_a_late_applier_respects_a_drop(catalog: GlueCatalog, glue: StrictGlue) -> None:
    """It looked before the drop was noted, and makes its partition after it was carried out."""
    other = GlueCatalog(catalog.place, AwsAccess())

    def drop() -> None:
        other.drop_partitions("shop", "track_order", [HOUR], 2)

    glue.before("batch_create_partition", drop)
    late = [at("late", 1), at("late", 1, ("2026-10-02", "00"))]
    catalog.put_partitions("shop", "track_order", late)
    assert HOUR not in [p.values for p in catalog.partitions("shop", "track_order")]


def test_listings_of_many_pages_are_read_to_the_end(catalog: GlueCatalog, glue: StrictGlue) -> None:
    glue.page = 7
    hours = [(f"2026-10-{day:02}", f"{hour:02}") for day in (1, 2, 3) for hour in range(24)]
    wanted = [at("/".join(hour), 1, hour) for hour in hours]
    catalog.put_partitions("shop", "track_order", wanted)
    assert catalog.partitions("shop", "track_order") == wanted
    assert catalog.partitions("shop", "track_order", ("2026-10-02", "2026-10-02")) == wanted[24:48]
    names = [f"track_{number:02}" for number in range(20)]
    for name in names:
        catalog.create_table(CatalogTable("shop", name, (), ("day",), name))
        catalog.ensure_database(name)
    assert [one.name for one in catalog.tables("shop")] == [*names, "track_order"]
    assert catalog.names("shop") == {*names, "track_order"}
    assert catalog.databases() == ["shop", *names]


def test_only_large_tables_are_listed_in_parallel(catalog: GlueCatalog, glue: StrictGlue) -> None:
    catalog.put_partitions("shop", "track_order", [at("first", 1), at("b", 1, ("2026-10-02", "0"))])
    catalog.partitions("shop", "track_order")
    assert glue.count("get_partitions") == 1
    glue.page = 1
    assert len(catalog.partitions("shop", "track_order")) == 2
    requests = [request for name, request in glue.asked if name == "get_partitions"]
    segments = {one["Segment"]["SegmentNumber"] for one in requests if "Segment" in one}
    assert segments == set(range(8))


def test_foreign_tables_are_hidden_and_kept(catalog: GlueCatalog, glue: StrictGlue) -> None:
    stored = table(glue)["StorageDescriptor"] | {"Location": "s3://their-bucket/r"}
    theirs = {"Name": "track_refund", "TableType": "EXTERNAL_TABLE", "StorageDescriptor": stored}
    view = {"Name": "orders_a_day", "TableType": "VIRTUAL_VIEW", "ViewOriginalText": "/* … */"}
    for one in (theirs, view):
        glue.client.create_table(DatabaseName="shop", TableInput=one)
    assert [one.name for one in catalog.tables("shop")] == ["track_order"]
    assert catalog.table("shop", "track_refund") is None
    assert catalog.table("shop", "orders_a_day") is None
    assert catalog.names("shop") == {"track_order", "track_refund", "orders_a_day"}
    refund = CatalogTable("shop", "track_refund", (), ("day",), "refund")
    assert catalog.create_table(refund) is False
    with pytest.raises(InvalidSetting, match="it lies in s3://their-bucket/r, not below s3://lake"):
        catalog.append_columns("shop", "track_refund", [PRICE])
    assert glue.count("update_table") == 0


def test_a_full_account_is_reported(catalog: GlueCatalog, glue: StrictGlue) -> None:
    def full() -> None:
        raise refusal("ResourceNumberLimitExceededException", "Number of tables exceeds 200000")

    glue.before("create_table", full)
    with pytest.raises(InvalidSetting, match=r"shop\.more is over a limit.*catalog_tables"):
        catalog.create_table(CatalogTable("shop", "more", (), ("day",), "more"))
    glue.before("create_database", full)
    with pytest.raises(InvalidSetting, match=r"more is over a limit.*catalog_databases"):
        catalog.ensure_database("more")


@pytest.fixture
def both(tmp_path: Path, aws: AwsServer, monkeypatch: pytest.MonkeyPatch) -> tuple[Runs, GlueRuns]:
    strict_glue(aws, monkeypatch)
    return Runs(tmp_path / "folder"), GlueRuns(tmp_path / "s3", aws)


def test_both_catalogs_have_the_same_tables(both: tuple[Runs, GlueRuns], aws: AwsServer) -> None:
    folder, glue = both
    story(folder)
    story(glue)
    assert catalog_entries(glue) == catalog_entries(folder)
    tables = ("identify", "page", "track_order")
    names = {f"__segment_datalake.{name}" for name in ("sync_records", "sync_reports")}
    names |= {f"shop.{name}" for name in tables}
    assert catalog_entries(glue).keys() == names
    for name in tables:
        assert glue.rows(name) == folder.rows(name)
    client = aws.client("glue")
    event_table = client.get_partitions(DatabaseName="shop", TableName="identify")["Partitions"]
    reports = client.get_partitions(DatabaseName=DATABASE, TableName=NAME)["Partitions"]
    places = [one["StorageDescriptor"]["Location"] for one in (*event_table, *reports)]
    assert places == [
        f"{PLACE}/segment-data/data/S1/versions/R3/segment_type=identify/day=2026-10-01/hr=07/",
        f"{PLACE}/segment-data/reports/day=2026-10-20/source=S1/",
    ]


def test_sql_and_reports_read_what_glue_leads_to(both: tuple[Runs, GlueRuns]) -> None:
    _, glue = both
    story(glue)
    sql = LakeSql(glue.catalog, glue.storage)
    rows = sql.query("SELECT message_id, properties_n FROM shop.track_order ORDER BY 1").to_pylist()
    assert [tuple(row.values()) for row in rows] == [("m1", "1"), ("m4", "3"), ("m6", "many")]
    by_table = sql.query(
        "SELECT table_name, sum(row_count) n FROM __segment_datalake.sync_reports "
        "WHERE type = 'event' AND NOT replay GROUP BY 1 ORDER BY 1"
    )
    counts = [tuple(row.values()) for row in by_table.to_pylist()]
    assert counts == [("identify", 1), ("page", 1), ("track_order", 4)]
    listed = sql.query("SHOW ALL TABLES").to_pylist()
    assert {row["name"] for row in listed} == {
        "identify",
        "page",
        "sync_records",
        "sync_reports",
        "track_order",
    }
