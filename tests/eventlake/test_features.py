"""Every feature once, in every naming and layout, with a prefix and a suppressed person."""

from pathlib import Path

import pytest

from eventlake.alerts.delivery import Evaluation
from eventlake.alerts.state import read_alerts
from eventlake.audit.audit import audit
from eventlake.audit.snapshot import FIRST, LAST, Scope
from eventlake.checks.published import TableChecks
from eventlake.load.record_log import BatchType
from eventlake.people import remaining
from eventlake.records.find import find
from eventlake.records.logs import count, newest_log
from eventlake.retype import find_column, preview
from eventlake.rules.types import LakeType
from eventlake.runs.context import now
from eventlake.runs.unit import Window
from eventlake.status import source_status
from tests.support.lakes.archive import identify, track
from tests.support.lakes.retyping import lake_of, suppress
from tests.support.lakes.runs import Runs

FIRST_DAY, SECOND_DAY = "2026-10-01", "2026-10-02"


@pytest.mark.parametrize("layout", ["year/month/day/hour", "day", "year/month/day"])
@pytest.mark.parametrize(
    ("naming", "order", "price"),
    [
        ("warehouse", "web_order", "price"),
        ("native", "web_track_order", "properties_price"),
    ],
)
def test_every_feature(tmp_path: Path, naming: str, order: str, price: str, layout: str) -> None:
    """Three syncs into one partition; the last rescues values and rejects a line."""
    alerts = {"webhook": "http://localhost:1/", "rescued_percent": 10, "rejected_percent": 10}
    runs = Runs(tmp_path, naming=naming, date_partition=layout, table_prefix="web", alerts=alerts)
    for id in ("m0", "m1"):
        runs.load(FIRST_DAY, track("Order", id, f"{FIRST_DAY}T07:00", price=1), name=id)
    ann, bob = ({"userId": name} for name in ("ann", "bob"))
    runs.load(
        SECOND_DAY,
        track("Order", "m2", f"{FIRST_DAY}T07:10", price="?") | ann,
        track("Order", "m3", f"{FIRST_DAY}T07:20", price="12,50") | bob,
        identify("m4", f"{SECOND_DAY}T07:00", n=1),
        "{",
        name="b",
    )
    suppress(runs.storage, "ann")
    lake, source = lake_of(runs), runs.source

    Evaluation(lake, now(), {}).evaluate(source)
    rejected, rescued = [m.message.text for m in read_alerts(runs.storage, "S1").notifications]
    assert "b.gz:4" in rejected
    assert f"shop.{order} (m3): 2 cells" in rescued and "12,50" in rescued
    assert source_status(lake, source, now()).failing is None

    [row] = find(lake, source, "m3").rows
    assert (row.database, row.table_name) == ("shop", order)
    log = newest_log(lake, source)
    assert count(runs.storage, log.files)[BatchType.LOADED] == 3
    assert [(one.name, one.rows) for one in remaining(lake, source)] == [(order, 1)]
    found = preview(lake, find_column(lake, f"shop.{order}.{price}"), LakeType.STRING)
    assert found.total.rows == 4

    audited = audit(lake, Scope(source, Window(FIRST, LAST)))
    assert audited.total.missing == audited.total.doubled == 0
    assert audited.total.unexpected == 1  # of the suppressed person, whom a replay removes
    results = list(TableChecks(lake, source, now()).run())
    assert [str(result) for result in results if not result.passed] == []
    assert runs.compact().partitions == 1
    runs.replay(FIRST_DAY, "2026-10-03")
    assert remaining(lake_of(runs), source) == []
    assert audit(lake_of(runs), Scope(source, Window(FIRST, LAST))).agrees
