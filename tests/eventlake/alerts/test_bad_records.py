"""What a message shows of records that were rejected or rescued, from real syncs."""

from datetime import timedelta
from typing import Any

from eventlake.alerts.delivery import Evaluation
from eventlake.alerts.state import Message, read_alerts
from eventlake.lake import Lake
from eventlake.runs.context import now
from tests.support.lakes.archive import order, track
from tests.support.lakes.retyping import suppress
from tests.support.lakes.runs import Runs, utc

DAY = "2026-10-01"
NOWHERE = {"webhook": "http://localhost:1/nowhere"}


def messages(runs: Runs, **alerts: Any) -> list[Message]:
    """The messages of a first evaluation, which finds all earlier syncs."""
    runs.set(alerts={**NOWHERE, **alerts})
    lake = Lake(runs.settings, runs.storage, runs.catalog)
    Evaluation(lake, now(), {}).evaluate(runs.source)
    return [entry.message for entry in read_alerts(runs.storage, runs.source.id).notifications]


def test_the_first_rejected_record_is_shown_with_its_place_and_reason(runs: Runs) -> None:
    good = [order(f"m{n}", DAY) for n in range(3)]
    runs.load(DAY, *good, "<h1>Bad Gateway</h1>", "null")
    [message] = messages(runs, rejected_percent=20)
    assert message.title == "shop: 40 % of the rows of a sync rejected"
    assert message.text.splitlines()[1:5] == [
        "Since: the sync of 2026-10-20 00:01 UTC",
        "How bad: 2 of 5 rows, more than 20 % (alerts.rejected_percent)",
        "First bad record: segment-logs/S1/1790812800000/a.gz:4: "
        "The line is not JSON: expecting value at character 1.",
        "  <h1>Bad Gateway</h1>",
    ]
    assert "`datalake records --run R1 --status rejected`" in message.text
    assert message.fields["record_content"] == "<h1>Bad Gateway</h1>"


def test_records_are_not_shown_where_that_is_switched_off(runs: Runs) -> None:
    runs.load(DAY, order(None, DAY, secret="own-secret"))
    [message] = messages(runs, rejected_percent=0, show_record=False)
    assert "a.gz:1" in message.text
    assert "own-secret" not in message.text + str(message.fields)


def test_a_rescued_record_is_shown_from_the_table_with_the_most_of_them(runs: Runs) -> None:
    first = [order("m1", DAY, price=1), track("Ping", "m2", DAY, n=1)]
    runs.load(DAY, *first)
    runs.load(
        "2026-10-02",
        order("m3", "2026-10-02", price=2),
        order("m4", "2026-10-02", price="12,50"),
        order("m5", "2026-10-02", price="-"),
        track("Ping", "m6", "2026-10-02", n="?"),
        name="b",
    )
    [message] = messages(runs, rescued_percent=50)
    assert message.title == "shop: 75 % as many rescued cells as rows in a sync"
    assert message.text.splitlines()[3:5] == [
        "First bad record: shop.track_order (m4): 2 cells of this table went to rescued_data",
        '  {"/properties/price":"12,50"}',
    ]


def test_records_of_suppressed_users_are_not_shown(runs: Runs) -> None:
    """Not even those that were logged, or loaded, before the user was suppressed."""
    ann, bob = {"userId": "ann"}, {"userId": "bob"}
    runs.load(DAY, order("m1", DAY, price=1))
    runs.load(
        DAY,
        *(order(None, DAY) | person for person in (ann, bob)),
        *(order(f"{person}", DAY, price="?") | person for person in (ann, bob)),
        name="b",
    )
    suppress(runs.storage, "ann")
    rejected, rescued = messages(runs, rejected_percent=1, rescued_percent=1)
    assert "b.gz:2" in rejected.text and '"bob"' in rejected.text
    assert "shop.track_order ({'userId': 'bob'})" in rescued.text
    assert "ann" not in rejected.text + rescued.text


def test_without_the_record_log_the_message_has_no_record(runs: Runs) -> None:
    runs.load(DAY, "null")
    runs.storage.delete_folder("sync_tracking_datasets")
    [message] = messages(runs, rejected_percent=1)
    assert "First bad record" not in message.text
    assert message.at - utc("2026-10-20T00:00:00") > timedelta()
