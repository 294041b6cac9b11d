"""Requests for another column type: recording, resolving and previewing them."""

import re
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventlake.retype import (
    EXAMPLES,
    PartitionPreview,
    days_to_replay,
    find_column,
    parse_type,
    preview,
    record_request,
)
from eventlake.rules import paths
from eventlake.rules.casts import Outcome
from eventlake.rules.counts import CastCounts
from eventlake.rules.errors import SettingsError, UsageError
from eventlake.rules.types import LakeType
from eventlake.state.lease import Lease, held_lease
from eventlake.state.manifest import RunKind, read_manifest
from tests.support.json_values import ANY, COLUMNS
from tests.support.lakes.archive import order, track
from tests.support.lakes.retyping import lake_of, request_type, target
from tests.support.lakes.runs import SOURCE_ID, Runs


def load_at(runs: Runs, *times: str) -> None:
    events = (order(f"m{at}", at, a=1, b=1) for at in times)
    runs.load(times[0][:10], *events)


def test_requests_add_up_and_are_withdrawn(runs: Runs) -> None:
    load_at(runs, "2026-10-01T07:00")
    request_type(runs, "track_order.a", "string")
    request_type(runs, "track_order.b", "decimal")
    request_type(runs, "track_order.a", "timestamp")
    assert runs.state().requested_types == {
        "shop.track_order": {"properties_a": "timestamp", "properties_b": "decimal(38,6)"}
    }
    request_type(runs, "track_order.a", "bigint")
    assert runs.state().requested_types == {"shop.track_order": {"properties_b": "decimal(38,6)"}}
    request_type(runs, "track_order.b", "bigint")
    assert runs.state().requested_types == {}


def test_a_request_is_a_separate_commit_and_no_run(runs: Runs) -> None:
    load_at(runs, "2026-10-01T07:00")
    request_type(runs, "track_order.a", "string")
    manifest = read_manifest(runs.storage, SOURCE_ID, 2)
    assert manifest is not None
    assert (manifest.kind, manifest.partitions, manifest.tables) == (RunKind.RETYPE, (), ())
    assert list(runs.reports()) == ["R1"]
    assert runs.storage.files(paths.open_runs(SOURCE_ID)) == []
    assert runs.storage.read(paths.lease(SOURCE_ID)) is None


def test_a_request_waits_for_the_lease(runs: Runs) -> None:
    load_at(runs, "2026-10-01T07:00")
    held_by: list[str] = []

    def waiting(lease: Lease) -> None:
        held_by.append(lease.work)
        runs.storage.delete(paths.lease(SOURCE_ID))

    with held_lease(runs.storage, SOURCE_ID, "R9", "replay of a day", waiting):
        record_request(lake_of(runs), target(runs, "track_order.a"), LakeType.STRING, waiting)
    assert held_by == ["replay of a day"]
    assert runs.state().requested_types == {"shop.track_order": {"properties_a": "string"}}


def test_a_request_for_the_type_that_a_replay_has_just_made_is_none(runs: Runs) -> None:
    load_at(runs, "2026-10-01T07:00")
    before = target(runs, "track_order.a")
    request_type(runs, "track_order.a", "string")
    runs.replay("2026-10-01", "2026-10-02")
    record_request(lake_of(runs), before, LakeType.STRING, print)
    assert runs.state().requested_types == {}


@pytest.mark.parametrize("changed", [{"date_partition": "day"}, {"naming": "warehouse"}])
def test_a_changed_layout_or_naming_is_refused(runs: Runs, changed: dict[str, str]) -> None:
    load_at(runs, "2026-10-01T07:00")
    runs.set(**changed)
    [name] = changed
    with pytest.raises(SettingsError, match=f"{name}: .* were made with"):
        request_type(runs, "track_order.a", "string")
    assert (runs.state().requested_types, runs.state().manifest) == ({}, 1)


def test_the_days_to_replay_are_those_of_the_table_that_a_replay_can_name(runs: Runs) -> None:
    load_at(runs, "2026-10-02T07:00", "2026-10-04T07:00", "2026-10-01T23:00", "2099-01-01T00:00")
    found = target(runs, "track_order.a")
    assert days_to_replay(lake_of(runs), found) == (date(2026, 10, 2), date(2026, 10, 4))


@pytest.mark.parametrize(
    ("text", "type"),
    [
        *((type.value, type) for type in LakeType),
        ("decimal", LakeType.DECIMAL),
        ("Decimal(38, 6)", LakeType.DECIMAL),
        ("STRING", LakeType.STRING),
        ("int", "'int' is no type of the lake"),
        ("strng", "did you mean 'string'?"),
        ("decimal(10,2)", "allowed are bigint, boolean, decimal(38,6), string, timestamp"),
        ("", "'' is no type"),
    ],
)
def test_the_five_types_have_names_and_others_are_refused(text: str, type: LakeType | str) -> None:
    if isinstance(type, LakeType):
        assert parse_type(text) is type
    else:
        with pytest.raises(UsageError, match=re.escape(type)):
            parse_type(text)


@pytest.fixture
def orders(runs: Runs) -> Runs:
    runs.load("2026-10-01", order("m1", "2026-10-01T07:00", n=1, m=1))
    return runs


def test_a_column_is_returned_with_source_table_and_requested_type(orders: Runs) -> None:
    found = target(orders, "track_order.n")
    assert (found.source.slug, found.schema.table) == ("shop", "track_order")
    assert (found.column.type, found.requested) == (LakeType.BIGINT, None)
    request_type(orders, "track_order.n", "string")
    assert target(orders, "track_order.n").requested is LakeType.STRING
    assert target(orders, "track_order.m").requested is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("shop.track_order", "write DB.TABLE.COLUMN"),
        ("shop.track_order.", "write DB.TABLE.COLUMN"),
        ("a.b.c.d", "write DB.TABLE.COLUMN"),
        ("shp.track_order.properties_n", "database 'shp'; did you mean 'shop'? (databases: shop)"),
        ("__segment_datalake.sync_reports.status", "No source writes event tables to a database"),
        ("shop.track_ordr.properties_n", "did you mean 'track_order'? `datalake tables shop`"),
        ("shop.track_order.property_n", "did you mean 'properties_n'? `datalake tables shop.tra"),
        ("shop.track_order.message_id", "a standard column: every table has it with the type"),
        ("shop.track_order.sent_at", "is a standard column"),
        ("shop.track_order.rescued_data", "keeps the values that did not fit"),
        ("shop.track_order.day", "is a partition key of shop.track_order"),
    ],
)
def test_a_column_without_a_choice_is_refused(orders: Runs, name: str, reason: str) -> None:
    with pytest.raises(UsageError, match=re.escape(reason)):
        find_column(lake_of(orders), name)


def test_before_the_first_sync_there_is_no_column(runs: Runs) -> None:
    with pytest.raises(UsageError, match="databases: none yet; `datalake sync` creates them"):
        find_column(lake_of(runs), "shop.track_order.properties_n")


def shown(runs: Runs, into: LakeType, column: str = "track_order.n") -> PartitionPreview:
    return preview(lake_of(runs), target(runs, column), into).total


def load(runs: Runs, *values: Any, day: str = "2026-10-01") -> None:
    """A file with an event for each value, and a sync of it."""
    name = f"{sum(1 for _ in runs.root.rglob('*.gz'))}"
    events = (order(f"{day}{name}-{n}", f"{day}T07:00", n=v) for n, v in enumerate(values))
    runs.load(day, *events, name=name)


def test_outcomes_are_counted_by_partition_and_in_all(runs: Runs) -> None:
    load(runs, "1", "2.5", "x", "", day="2026-10-01")
    load(runs, "4", None, day="2026-10-02")
    seen = preview(lake_of(runs), target(runs, "track_order.n"), LakeType.BIGINT)
    assert seen.partitions == [
        PartitionPreview(("2026-10-01", "07"), 4, CastCounts(exact=2, lossy=1, failed=1)),
        PartitionPreview(("2026-10-02", "07"), 2, CastCounts(exact=1)),
    ]
    assert seen.total == PartitionPreview((), 6, CastCounts(exact=3, lossy=1, failed=1))
    assert seen.examples == {Outcome.LOSSY: ["2.5"], Outcome.FAILED: ["x"]}


def test_values_that_are_rescued_now_count_as_they_were_sent(runs: Runs) -> None:
    load(runs, 1)
    load(runs, "12,50", 2.5, [1], True, 10**20)
    assert shown(runs, LakeType.STRING) == PartitionPreview((), 6, CastCounts(exact=6), 5)
    decimal = preview(lake_of(runs), target(runs, "track_order.n"), LakeType.DECIMAL)
    assert decimal.total == PartitionPreview((), 6, CastCounts(exact=3, failed=3), 2)
    assert decimal.examples == {Outcome.FAILED: ["12,50", "[1]", "true"]}


def test_a_lossy_cell_is_judged_by_its_original_value(runs: Runs) -> None:
    load(runs, 1)
    load(runs, 2.25, 3.0)
    assert shown(runs, LakeType.DECIMAL) == PartitionPreview((), 3, CastCounts(exact=3), 1)
    load(runs, 0.1234567)
    assert shown(runs, LakeType.DECIMAL).casts == CastCounts(exact=3, lossy=1)


def test_a_rescued_value_that_belongs_to_another_column_does_not_count(runs: Runs) -> None:
    load(runs, 1)
    runs.load("2026-10-01", order("m0", "2026-10-01T07:00", price=1))
    runs.load(
        "2026-10-01",
        order("null here", "2026-10-01T07:00", price="dear"),
        order("m1", "2026-10-01T07:00", n=2, N="loser", other=1),
        order("m2", "2026-10-01T07:00", N="two", day="no column"),
        order("m3", "2026-10-01T07:00", N="2026-10-01", n="loses to nobody"),
        name="b",
    )
    assert shown(runs, LakeType.STRING) == PartitionPreview((), 6, CastCounts(exact=4), 2)
    assert shown(runs, LakeType.TIMESTAMP).casts == CastCounts(failed=4)


def test_files_from_before_the_column_have_nothing_in_it(runs: Runs) -> None:
    load(runs, None, None)
    load(runs, 1)
    assert shown(runs, LakeType.STRING) == PartitionPreview((), 3, CastCounts(exact=1))


def test_an_empty_text_leaves_a_trace_in_string_columns_only(runs: Runs) -> None:
    load(runs, "", "x")
    assert shown(runs, LakeType.BIGINT).casts == CastCounts(exact=1, failed=1)
    day = runs.archive.day("2026-10-02")
    for id, n in enumerate([1, ""]):
        day.file(f"paid {id}", track("Paid", f"p{id}", "2026-10-02T07:00", n=n))
        runs.sync()
    assert shown(runs, LakeType.STRING, "track_paid.n").casts == CastCounts(exact=1)


def test_few_examples_are_shown_and_none_twice(runs: Runs) -> None:
    load(runs, *(f"x{n % 7}" for n in range(50)))
    seen = preview(lake_of(runs), target(runs, "track_order.n"), LakeType.BOOLEAN)
    assert seen.examples == {Outcome.FAILED: [f"x{n}" for n in range(EXAMPLES)]}


@settings(max_examples=100)
@given(COLUMNS, st.lists(ANY, max_size=6), st.booleans(), st.sampled_from(LakeType))
def test_the_replay_counts_the_same_as_the_preview(
    first: list[Any], later: list[Any], rivals: bool, into: LakeType
) -> None:
    with TemporaryDirectory() as folder:
        runs = Runs(Path(folder))
        kept = [value for value in first if value not in ("", None)] or [1]
        load(runs, *kept)
        more = [value for value in later if value != ""]
        load(runs, *more)
        if rivals:
            event = order("rivals", "2026-10-01T07:00", n=5, N="loser")
            runs.load("2026-10-02", event, name="z")
        if into is target(runs, "track_order.n").column.type:
            return
        expected = shown(runs, into)
        request_type(runs, "track_order.n", into.value)
        report = runs.replay("2026-10-01", "2026-10-02").tables["shop.track_order"]
        assert runs.state().requested_types == {}
        assert expected.casts == report.casts["properties_n"]
        assert expected.rows == report.row_count
