"""Which column is meant, and what may become of it."""

import pytest

from eventlake.retype.request import find_column, parse_type
from eventlake.rules.errors import UsageError
from eventlake.rules.types import LakeType
from tests.support.lakes.archive import track
from tests.support.lakes.retyping import lake_of, target, wish
from tests.support.lakes.runs import Runs


@pytest.mark.parametrize(
    ("text", "type"),
    [
        ("bigint", LakeType.BIGINT),
        ("boolean", LakeType.BOOLEAN),
        ("decimal", LakeType.DECIMAL),
        ("decimal(38,6)", LakeType.DECIMAL),
        ("Decimal(38, 6)", LakeType.DECIMAL),
        ("STRING", LakeType.STRING),
        ("timestamp", LakeType.TIMESTAMP),
    ],
)
def test_the_five_types_have_their_names(text: str, type: LakeType) -> None:
    assert parse_type(text) is type


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("int", "'int' is no type of the lake"),
        ("strng", "did you mean 'string'?"),
        ("decimal(10,2)", "allowed are bigint, boolean, decimal(38,6), string, timestamp"),
        ("", "'' is no type"),
    ],
)
def test_other_types_are_refused(text: str, told: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_type(text)
    assert told in str(refused.value)


@pytest.fixture
def orders(runs: Runs) -> Runs:
    runs.archive.day("2026-10-01").file("a", track("Order", "m1", "2026-10-01T07:00", n=1, m=1))
    runs.sync()
    return runs


def test_a_column_comes_with_its_source_its_table_and_what_is_wished_of_it(orders: Runs) -> None:
    found = target(orders, "track_order.n")
    assert (found.source.slug, found.schema.table) == ("shop", "track_order")
    assert (found.column.type, found.wished) == (LakeType.BIGINT, None)
    wish(orders, "track_order.n", "string")
    assert target(orders, "track_order.n").wished is LakeType.STRING
    assert target(orders, "track_order.m").wished is None


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("shop.track_order", "write DB.TABLE.COLUMN"),
        ("shop.track_order.", "write DB.TABLE.COLUMN"),
        ("a.b.c.d", "write DB.TABLE.COLUMN"),
        ("shp.track_order.properties_n", "database 'shp'; did you mean 'shop'? (databases: shop)"),
        ("__segment_datalake.sync_reports.status", "No source writes event tables to a database"),
        ("shop.track_ordr.properties_n", "did you mean 'track_order'? `datalake tables shop`"),
        ("shop.track_order.property_n", "did you mean 'properties_n'? `datalake tables shop.tra"),
        ("shop.track_order.message_id", "a standard column: every table has it, and with the type"),
        ("shop.track_order.sent_at", "is a standard column"),
        ("shop.track_order.rescued_data", "keeps, as JSON text, what did not fit"),
        ("shop.track_order.day", "is a partition key of shop.track_order"),
    ],
)
def test_what_has_no_type_to_choose_is_refused_with_the_reason(
    orders: Runs, name: str, told: str
) -> None:
    with pytest.raises(UsageError) as refused:
        find_column(lake_of(orders), name)
    assert told in str(refused.value)


def test_before_the_first_sync_there_is_no_column(runs: Runs) -> None:
    with pytest.raises(UsageError, match="databases: none yet; `datalake sync` makes them"):
        find_column(lake_of(runs), "shop.track_order.properties_n")
