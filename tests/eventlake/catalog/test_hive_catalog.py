"""The catalog in a Hive metastore: what others see there, and what goes wrong."""

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trustme
from pymetastore.hive_metastore import ThriftHiveMetastore
from pymetastore.hive_metastore.ttypes import (
    Database,
    FieldSchema,
    MetaException,
    Partition,
    Table,
)
from thrift.transport.TTransport import TTransportException

from eventlake.catalog import external
from eventlake.catalog.base import CatalogColumn, CatalogTable
from eventlake.catalog.hive import HiveCatalog, client
from eventlake.catalog.hive.client import Metastore
from eventlake.catalog.sync_records import SYNC_RECORDS, ensure_own_tables
from eventlake.catalog.sync_reports import SYNC_REPORTS
from eventlake.rules.errors import (
    InsufficientPermissions,
    InvalidSetting,
    LakeError,
    ServiceTrouble,
)
from eventlake.settings.hive import Hive, Sasl
from tests.support.catalogs.by_hand import HOUR, ORDERS, at, locations
from tests.support.repo import reserved_port
from tests.support.servers.azurite import HOST
from tests.support.servers.metastore import BUCKET, CONTAINER, MetastoreServer
from tests.support.servers.thrift_proxies import password, proxy, tls

PRICE = CatalogColumn("price", "decimal(38,6)", "/properties/price")
NAMED = ("shop", "track_order")


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(external, "_FIRST", 0.0)


@pytest.fixture
def catalog(hive_catalog: HiveCatalog) -> HiveCatalog:
    hive_catalog.ensure_database("shop")
    hive_catalog.create_table(ORDERS)
    return hive_catalog


def call(catalog: HiveCatalog, method: str, *given: Any) -> Any:
    """What another program asks of the metastore."""
    return Metastore(catalog.server).call("", method, *given)


def table(catalog: HiveCatalog) -> Table:
    found: Table = call(catalog, "get_table", *NAMED)
    return found


def edit(catalog: HiveCatalog, change: Callable[[Table], object]) -> None:
    """What a person does to the table."""
    found = table(catalog)
    change(found)
    call(catalog, "alter_table", *NAMED, found)


def partition(catalog: HiveCatalog) -> Partition:
    [found] = call(catalog, "get_partitions", *NAMED, -1)
    assert isinstance(found, Partition)
    return found


def test_a_table_has_what_readers_expect(catalog: HiveCatalog) -> None:
    made = table(catalog)
    assert made.tableType == "EXTERNAL_TABLE"
    assert [(key.name, key.type) for key in made.partitionKeys] == [
        ("day", "string"),
        ("hr", "string"),
    ]
    assert (made.parameters["EXTERNAL"], made.parameters["comment"]) == ("TRUE", "Order")
    stored = made.sd
    assert stored.location == f"file:{catalog.place}/segment-data/data/S1/segment_type=track_order"
    assert [(c.name, c.type, c.comment) for c in stored.cols] == [
        ("message_id", "string", "/messageId")
    ]
    parquet = "org.apache.hadoop.hive.ql.io.parquet"
    assert stored.inputFormat == f"{parquet}.MapredParquetInputFormat"
    assert stored.outputFormat == f"{parquet}.MapredParquetOutputFormat"
    assert stored.serdeInfo.serializationLib == f"{parquet}.serde.ParquetHiveSerDe"
    catalog.put_partitions(*NAMED, [at("some/folder", 4)])
    sizes = {"numRows": "3", "totalSize": "100", "numFiles": "1"}
    found = partition(catalog)
    assert found.parameters.items() >= {"datalake.version": "4", **sizes}.items()
    assert found.sd.location == f"file:{catalog.place}/some/folder"


@pytest.mark.parametrize("place", [f"abfss://{CONTAINER}@{HOST}/lake", f"s3://{BUCKET}/some/lake"])
def test_a_lake_may_lie_in_a_container_or_bucket(metastore: MetastoreServer, place: str) -> None:
    catalog = HiveCatalog(place, metastore.settings)
    catalog.ensure_database("shop")
    catalog.create_table(ORDERS)
    assert table(catalog).sd.location == f"{place}/{ORDERS.location}"
    catalog.put_partitions(*NAMED, [at("some/folder", 1)])
    assert partition(catalog).sd.location == f"{place}/some/folder"
    assert (catalog.table(*NAMED), locations(catalog)) == (ORDERS, ["some/folder"])


def test_reports_are_read_as_json_and_records_by_lists(hive_catalog: HiveCatalog) -> None:
    ensure_own_tables(hive_catalog)
    ensure_own_tables(hive_catalog)
    assert hive_catalog.tables("__segment_datalake") == [SYNC_RECORDS, SYNC_REPORTS]
    records = call(hive_catalog, "get_table", "__segment_datalake", "sync_records")
    assert records.sd.inputFormat == "org.apache.hadoop.hive.ql.io.SymlinkTextInputFormat"
    made = call(hive_catalog, "get_table", "__segment_datalake", "sync_reports")
    assert made.sd.serdeInfo.serializationLib == "org.openx.data.jsonserde.JsonSerDe"
    assert made.sd.inputFormat == "org.apache.hadoop.mapred.TextInputFormat"


def test_only_databases_and_tables_of_the_lake_are_listed(catalog: HiveCatalog) -> None:
    for name in ("finance", "web"):
        call(catalog, "create_database", Database(name=name))
    assert catalog.databases() == ["shop"]
    named = HiveCatalog(catalog.place, catalog.server, named=("web", "not_made_yet"))
    assert named.databases() == ["shop", "web"]
    elsewhere = HiveCatalog(f"{catalog.place}-2", catalog.server)
    assert elsewhere.databases() == []
    assert elsewhere.tables("shop") == []
    assert elsewhere.names("shop") == {"track_order"}
    assert elsewhere.create_table(ORDERS) is False
    with pytest.raises(InvalidSetting, match=r"shop\.track_order .* is not one of this lake"):
        elsewhere.append_columns(*NAMED, [PRICE])
    assert catalog.table(*NAMED) == ORDERS


def test_what_others_write_stays(catalog: HiveCatalog) -> None:
    def edited(found: Table) -> None:
        found.parameters["owner"] = "us"
        found.sd.cols[0].comment = "the id"
        found.sd.cols.append(FieldSchema("theirs", "double"))

    catalog.put_partitions(*NAMED, [at("old", 1)])
    edit(catalog, edited)
    changed = partition(catalog)
    changed.parameters["theirs"] = "1"
    call(catalog, "alter_partitions", *NAMED, [changed])
    catalog.append_columns(*NAMED, [PRICE])
    catalog.retype(*NAMED, {"price": "string"}, [at("new", 2)], 2)
    found = table(catalog)
    assert found.parameters["owner"] == "us"
    columns = [("message_id", "string", "the id"), ("theirs", "double", None)]
    assert [(c.name, c.type, c.comment) for c in found.sd.cols[:2]] == columns
    moved = partition(catalog)
    assert (moved.parameters["theirs"], locations(catalog)) == ("1", ["new"])
    assert [column.name for column in moved.sd.cols] == ["message_id", "theirs", "price"]


def test_comments_are_plain_in_the_metastore_and_whole_in_the_lake(catalog: HiveCatalog) -> None:
    odd = [f"/properties/{'注册' * n}/\n" for n in (1, 40, 2_000)]
    columns = [CatalogColumn(f"c{n}", "string", comment) for n, comment in enumerate(odd)]
    catalog.append_columns(*NAMED, columns[:2])
    catalog.append_columns(*NAMED, columns[2:])
    made = table(catalog)
    assert all(c.comment.isascii() and len(c.comment) <= 255 for c in made.sd.cols)
    assert made.sd.cols[1].comment == r"/properties/\u6ce8\u518c/\u000a"
    assert all(text.isascii() and len(text) <= 4_000 for text in made.parameters.values())
    found = catalog.table(*NAMED)
    assert found is not None
    assert [column.comment for column in found.columns[1:]] == odd


N = CatalogColumn("n", "string", "/n")


def test_text_becomes_a_number(catalog: HiveCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Metastores refuse this in one step; a run may die between the two."""
    catalog.append_columns(*NAMED, [N, PRICE])
    catalog.put_partitions(*NAMED, [at("old", 1)])
    sent: list[Table] = []
    send = HiveCatalog._send

    def dies_after_cutting(self: HiveCatalog, got: Table, wanted: Table) -> None:
        send(self, got, wanted)
        sent.append(wanted)
        if len(wanted.sd.cols) == 1:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(HiveCatalog, "_send", dies_after_cutting)
        with pytest.raises(KeyboardInterrupt):
            catalog.retype(*NAMED, {"n": "bigint"}, [at("new", 2)], 2)
    assert [column.name for column in table(catalog).sd.cols] == ["message_id"]
    between = catalog.table(*NAMED)
    assert between is not None
    assert (between.columns[1:], between.retyped) == ((N, PRICE), -2)
    catalog.retype(*NAMED, {"n": "bigint"}, [at("new", 2)], 2)
    found = catalog.table(*NAMED)
    assert found is not None
    assert found.columns[1:] == (msgspec.structs.replace(N, type="bigint"), PRICE)
    assert (found.retyped, locations(catalog)) == (2, ["new"])
    assert not any(key.startswith("datalake.columns") for key in table(catalog).parameters)


def test_an_entry_that_was_changed_is_restored(catalog: HiveCatalog) -> None:
    catalog.append_columns(*NAMED, [N, PRICE])
    wanted = catalog.table(*NAMED)
    assert wanted is not None

    def spoiled(found: Table) -> None:
        found.sd.cols = found.sd.cols[:1]
        found.sd.location = f"file:{catalog.place}/elsewhere"

    edit(catalog, spoiled)
    assert catalog.table(*NAMED) != wanted
    catalog.restore(wanted)
    assert catalog.table(*NAMED) == wanted
    revision = table(catalog).parameters["datalake.revision"]
    catalog.restore(wanted)
    assert table(catalog).parameters["datalake.revision"] == revision


def test_a_change_that_another_overtakes_is_made_anew(
    catalog: HiveCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = HiveCatalog._send

    def overtaken(self: HiveCatalog, got: Table, wanted: Table) -> None:
        monkeypatch.undo()
        catalog.append_columns(*NAMED, [N])
        send(self, got, wanted)

    monkeypatch.setattr(HiveCatalog, "_send", overtaken)
    catalog.append_columns(*NAMED, [PRICE])
    found = catalog.table(*NAMED)
    assert found is not None
    assert found.columns[1:] == (N, PRICE)


def test_partitions_that_come_and_go_meanwhile_are_as_they_should_be(
    catalog: HiveCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = ("2026-10-01", "08")
    catalog.put_partitions(*NAMED, [at("old", 1)])
    create = HiveCatalog._create

    def meanwhile(self: HiveCatalog, found: Table, new: list[Partition]) -> set[tuple[str, ...]]:
        monkeypatch.undo()
        call(catalog, "drop_partition", *NAMED, list(HOUR), False)
        catalog.put_partitions(*NAMED, [at("by another", 2, other)])
        return create(self, found, new)

    monkeypatch.setattr(HiveCatalog, "_create", meanwhile)
    catalog.put_partitions(*NAMED, [at("new", 3), at("new", 3, other)])
    assert locations(catalog) == ["new", "new"]


def test_what_a_later_manifest_has_dropped_meanwhile_is_taken_back(
    catalog: HiveCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = HiveCatalog._put

    def overtaken(self: HiveCatalog, found: Table, wanted: Any) -> set[tuple[str, ...]]:
        monkeypatch.undo()
        made = put(self, found, wanted)
        catalog.drop_partitions(*NAMED, [("2026-10-01", "09")], 5)
        return made

    monkeypatch.setattr(HiveCatalog, "_put", overtaken)
    catalog.put_partitions(*NAMED, [at("late", 1)])
    assert locations(catalog) == []


def test_dropped_partitions_keep_their_files(catalog: HiveCatalog, tmp_path: Path) -> None:
    file = Path(catalog.place, "some/folder/a.parquet")
    file.parent.mkdir(parents=True)
    file.write_bytes(b"x")
    catalog.put_partitions(*NAMED, [at("some/folder", 1)])
    catalog.drop_partitions(*NAMED, [HOUR], 2)
    assert (locations(catalog), file.read_bytes()) == ([], b"x")


class TestConnections:
    def test_those_that_the_server_has_closed_are_opened_again(self, catalog: HiveCatalog) -> None:
        connections = client._connections(catalog.server)
        assert connections.idle
        for _, transport in connections.idle:
            transport.close()
        assert catalog.databases() == ["shop"]

    def test_a_metastore_that_is_down(self, catalog: HiveCatalog) -> None:
        with reserved_port() as port:
            uri = f"thrift://127.0.0.1:{port}"
            down = HiveCatalog(catalog.place, Hive(uri=uri))
            with pytest.raises(ServiceTrouble, match=rf"{uri} did not answer.*If it is down, star"):
                down.databases()
            second = Hive(uri=f"{uri},{catalog.server.uri}")
            assert HiveCatalog(catalog.place, second).databases() == ["shop"]

    def test_tls(
        self,
        catalog: HiveCatalog,
        metastore: MetastoreServer,
        authority: trustme.CA,
        trusted: None,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("localhost").configure_cert(context)
        with proxy(metastore.port, tls(context)) as port:
            secured = Hive(uri=f"thrift://localhost:{port}", tls=True)
            assert HiveCatalog(catalog.place, secured).databases() == ["shop"]
            monkeypatch.delenv("SSL_CERT_FILE")
            client.forget_connections()
            with pytest.raises(InvalidSetting, match=r"`hive\.tls`.*SSL_CERT_FILE"):
                HiveCatalog(catalog.place, secured).databases()

    def test_user_and_password(
        self, catalog: HiveCatalog, metastore: MetastoreServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with proxy(metastore.port, password("lake", "s3cret")) as port:
            signed = Hive(uri=f"thrift://127.0.0.1:{port}", sasl=Sasl.PLAIN, user="lake")
            there = HiveCatalog(catalog.place, signed)
            with pytest.raises(InvalidSetting, match="DATALAKE_HIVE_PASSWORD is not set"):
                there.databases()
            monkeypatch.setenv("DATALAKE_HIVE_PASSWORD", "s3cret")
            assert there.table(*NAMED) == ORDERS
            client.forget_connections()
            monkeypatch.setenv("DATALAKE_HIVE_PASSWORD", "wrong")
            with pytest.raises(InvalidSetting, match=r"`hive\.sasl`.*refused the sign-in") as wrong:
                there.databases()
            assert "wrong" not in str(wrong.value)


def test_a_metastore_without_the_connector_of_the_storage(metastore: MetastoreServer) -> None:
    catalog = HiveCatalog(f"abfss://other@{HOST}/lake", metastore.settings)
    catalog.ensure_database("shop")
    with pytest.raises(InvalidSetting, match=r"`hive\.uri`: the metastore cannot use the locat"):
        catalog.create_table(ORDERS)


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        (
            "Got exception: AccessControlException Permission denied: user=x",
            InsufficientPermissions,
        ),
        (
            "AbfsRestOperationException ... 403, AuthorizationPermissionMismatch",
            InsufficientPermissions,
        ),
        ("Unable to update transaction database", ServiceTrouble),
    ],
)
def test_refusals_of_the_metastore(
    catalog: HiveCatalog, monkeypatch: pytest.MonkeyPatch, said: str, kind: type[LakeError]
) -> None:
    def refuse(*_: Any) -> None:
        raise MetaException(said)

    monkeypatch.setattr(ThriftHiveMetastore.Client, "alter_table_with_environment_context", refuse)
    with pytest.raises(kind, match=r"shop\.track_order"):
        catalog.append_columns(*NAMED, [PRICE])


def test_a_lost_answer_is_asked_again(
    catalog: HiveCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    alter = ThriftHiveMetastore.Client.alter_table_with_environment_context
    lost: list[int] = []

    def answer_lost(self: Any, *given: Any) -> None:
        alter(self, *given)
        if not lost:
            lost.append(1)
            raise TTransportException(message="TSocket read 0 bytes")

    monkeypatch.setattr(
        ThriftHiveMetastore.Client, "alter_table_with_environment_context", answer_lost
    )
    catalog.append_columns(*NAMED, [PRICE])
    found = catalog.table(*NAMED)
    assert found is not None
    assert found.columns == (*ORDERS.columns, PRICE)


def test_a_wide_table_is_read_in_batches(
    catalog: HiveCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eventlake.catalog.hive.catalog._BATCH_COLUMNS", 3)
    hours = [("2026-10-01", f"{hour:02}") for hour in range(8)]
    wanted = [at("/".join(hour), 1, hour) for hour in hours]
    catalog.put_partitions(*NAMED, wanted)
    assert catalog.partitions(*NAMED) == wanted
    assert catalog.create_table(CatalogTable("shop", "empty", (), ("day",), "e")) is True
