"""Large archives on real Spark, held to the raw JSON; they take minutes: `make soak`."""

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from eventlake.lake import Lake
from eventlake.rules.counts import UnitReport
from eventlake.runs.unit import Window
from eventlake.sample import IOS_PROD, SampleSpec, write_archive
from eventlake.sql import LakeSql
from spark_resources.engines.local import LocalEngine
from tests.support.lakes.archive import arrivals, message_ids
from tests.support.lakes.jobs import lake_sums, open_lake, run
from tests.support.lakes.retyping import suppress
from tests.support.oracles.recount import raw_sums

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(3_600)]
TWO_HUNDRED_THOUSAND = SampleSpec(days=2, events_per_day=100_000)
A_MILLION = SampleSpec(days=7, events_per_day=136_000, faults=False, duplicates=0.075)


def test_every_column_of_200_000_events_adds_up_to_what_the_raw_json_does(
    tmp_path: Path, engine: LocalEngine
) -> None:
    generated = write_archive(tmp_path, TWO_HUNDRED_THOUSAND, sources=[IOS_PROD])
    lake = open_lake(tmp_path, IOS_PROD)
    report = run(engine, lake)

    loads = generated.at_once(IOS_PROD.id)
    wanted = raw_sums(tmp_path, ([file.path for file in load] for load in loads))
    assert report.row_count > 200_000
    assert lake_sums(lake.catalog, lake.storage, IOS_PROD.slug) == wanted


def test_a_suppressed_user_among_200_000_events_is_neither_loaded_nor_kept(
    tmp_path: Path, engine: LocalEngine
) -> None:
    lake = open_lake(tmp_path, IOS_PROD)
    write_archive(tmp_path, TWO_HUNDRED_THOUSAND, sources=[IOS_PROD], arrived=1)
    run(engine, lake)
    before = rows_by_user(lake)
    user, rows = before.most_common(1)[0]
    suppress(lake.storage, user)
    write_archive(tmp_path, TWO_HUNDRED_THOUSAND, sources=[IOS_PROD])

    synced = run(engine, lake)
    synced.check_balance()
    assert synced.suppressed > 10
    assert rows_by_user(lake)[user] == rows > 10

    days = Window(datetime(2026, 9, 30, tzinfo=UTC), datetime(2026, 10, 4, tzinfo=UTC))
    replayed = run(engine, lake, window=days)
    replayed.check_balance()
    assert replayed.suppressed >= synced.suppressed + rows
    after = rows_by_user(lake)
    assert after[user] == 0 and after.total() > before.total()


def rows_by_user(lake: Lake) -> Counter[str]:
    found = Counter[str]()
    sql = LakeSql(lake.catalog, lake.storage)
    for table in lake.catalog.tables(IOS_PROD.slug):
        users = sql.query(f"SELECT user_id FROM {table.full_name} WHERE user_id IS NOT NULL")
        found.update(users["user_id"].to_pylist())
    return found


def test_exactly_the_distinct_ids_of_a_million_events_in_seven_days_and_twelve_syncs(
    tmp_path: Path, engine: LocalEngine
) -> None:
    lake = open_lake(tmp_path / "lake", IOS_PROD)
    sent: list[str] = []
    done = UnitReport()
    for files in arrivals(tmp_path / "lake", A_MILLION, IOS_PROD, syncs=12):
        done += run(engine, lake)
        sent += message_ids(tmp_path / "lake", files)
        distinct = set(sent)
        assert (done.row_count, done.duplicates) == (len(distinct), len(sent) - len(distinct))
    assert len(sent) > 1_000_000
    assert done.duplicates > 0.05 * len(sent)

    sql = LakeSql(lake.catalog, lake.storage)
    held = [
        id
        for table in lake.catalog.tables(IOS_PROD.slug)
        for id in sql.query(f"SELECT message_id FROM {table.full_name}")["message_id"].to_pylist()
    ]
    assert len(held) == len(distinct)
    assert set(held) == distinct
