"""Passports of columns: what footers, reports and the newest rows say of them."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from eventlake.api import EventLake
from eventlake.api.tables import Table
from eventlake.checks.published import TableChecks
from eventlake.checks.view import SILENT_COLUMNS
from eventlake.rules.clock import now
from eventlake.rules.counts import CastCounts
from eventlake.rules.suppression import IdKind
from eventlake.rules.types import LakeType
from eventlake.sample import WEB_SHOP
from eventlake.state.suppression import WHOLE_LAKE, change
from tests.support.lakes.archive import Archive
from tests.support.lakes.jobs import drained
from tests.support.lakes.settings import lake_in

TODAY = datetime.now(UTC).date()
ROWS = 20  # of each day


def order(n: int, days_ago: int, **properties: Any) -> dict[str, Any]:
    day = TODAY - timedelta(days=days_ago)
    return {
        "type": "track",
        "event": "Order",
        "messageId": f"m{days_ago}-{n}",
        "receivedAt": f"{day}T00:{n:02}:00Z",
        "userId": f"u{n}",
        "context": {"library": {"name": "lib", "version": f"2.{days_ago}"}},
        "properties": properties,
    }


def on_day(n: int, days_ago: int) -> dict[str, Any]:
    """The later values of `quantity` do not fit; `coupon` goes silent; `level` came later."""
    properties: dict[str, Any] = {
        "quantity": n if days_ago > 1 else f"{n} pcs",
        "number": str(n % 3),
        "zip": f"0{n % 3}",
        "price": n + 0.25 if days_ago == 2 else n,
    }
    if days_ago > 1:
        properties["coupon"] = "A"
    if days_ago <= 2 and n % 2:
        properties["level"] = True
    return order(n, days_ago, **properties)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    folder = tmp_path_factory.mktemp("passport")
    lake = lake_in(folder, WEB_SHOP)
    archive = Archive(folder / "data/segment-logs" / WEB_SHOP.id)
    for days in ((5, 4, 3), (2,), (1, 0)):
        for ago in days:
            events = [on_day(n, ago) for n in range(ROWS)]
            archive.day(str(TODAY - timedelta(days=ago))).file(f"{ago}", *events)
        drained(lake.settings)
    return EventLake(lake).table("web_shop.track_order")


def test_fill_rates_are_those_of_the_rows(table: Table) -> None:
    fill = table.fill()
    assert len(fill.days) == 6
    rows = table.scan(["day", "properties_level", "properties_coupon"]).pandas()
    for column in ("properties_level", "properties_coupon"):
        shares = rows.groupby("day")[column].agg(lambda values: values.notna().mean())
        assert fill.by_day(column) == shares.to_dict()
    # The values of `quantity` still come, but fit no number.
    assert fill.silent() == ["properties_coupon", "properties_quantity"]
    assert table.passport("properties_coupon").silent
    assert not table.passport("properties_level").silent


def test_the_first_value_names_its_run_its_event_and_its_library(table: Table) -> None:
    first = table.passport("properties_level").first
    reports = list(EventLake(table.lake).reports())
    assert first.run is not None
    assert first.run.run_id == reports[1].run_id
    assert (first.message_id, first.library) == ("m2-1", "lib 2.2")
    assert table.passport("properties_zip").first.message_id == "m5-0"
    never = table.passport("group_id").first
    assert (never.message_id, never.run) == ("", reports[-1])


def test_values_that_do_not_fit_are_shown_and_another_type_is_proposed(table: Table) -> None:
    found = table.passport("properties_quantity")
    assert found.column.type == "bigint"
    assert found.kinds == {"integer": 4 * ROWS, "text": 2 * ROWS}
    assert found.values.rescued == 2 * ROWS
    assert found.rescued[0] in {f'"{n} pcs"' for n in range(ROWS)}
    assert found.casts[LakeType.BIGINT] == CastCounts(exact=4 * ROWS, failed=2 * ROWS)
    assert found.proposal is not None
    assert found.proposal.type is LakeType.STRING
    assert "40 of 120 values do not fit bigint" in found.proposal.reason
    price = table.passport("properties_price")
    assert price.casts[LakeType.BIGINT] == CastCounts(exact=5 * ROWS, lossy=ROWS)
    assert price.proposal is not None
    assert price.proposal.type is LakeType.DECIMAL


@pytest.mark.parametrize(
    ("column", "type"),
    [
        ("properties_number", LakeType.BIGINT),
        ("properties_zip", None),  # 01 is no number
        ("properties_coupon", None),
        ("properties_level", None),
        ("user_id", None),  # standard columns keep their types
        ("rescued_data", None),
        ("day", None),
    ],
)
def test_a_type_is_proposed_only_where_nothing_is_lost(
    table: Table, column: str, type: LakeType | None
) -> None:
    proposal = table.passport(column).proposal
    assert (proposal.type if proposal else None) is type


@pytest.mark.parametrize("on", [True, False])
def test_silent_columns_are_a_check_that_is_off_by_default(table: Table, on: bool) -> None:
    assert table.owner is not None
    source = table.owner.source
    alerts = source.alerts.model_copy(update={"silent_columns": on})
    watched = source.model_copy(update={"alerts": alerts})
    results = [
        r for r in TableChecks(table.lake, watched, now()).run() if r.check == SILENT_COLUMNS
    ]
    assert len(results) == on
    for result in results:
        assert not result.passed
        first, second = result.evidence["first_problems"]
        assert first.startswith("properties_coupon: 100 % of rows until ")
        assert second.startswith("properties_quantity: 100 % of rows until ")


def test_values_of_suppressed_people_are_in_no_passport(table: Table) -> None:
    lake, at = table.lake, now()
    change(lake.storage, lambda e: e.with_ids(["u7"], IdKind.USER, WHOLE_LAKE, at), at)
    fresh = EventLake(lake).table(table.name)
    assert fresh.passport("properties_quantity").values.rows == 6 * (ROWS - 1)
    shown = fresh.passport("user_id").frequent + fresh.passport("properties_quantity").frequent
    assert {"u7", "7"}.isdisjoint(value for value, _ in shown)
