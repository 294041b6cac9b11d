"""Wishes are kept, changed, taken back, and wait their turn."""

from datetime import date

import pytest

from eventlake.retype.request import days_to_replay, record_wish
from eventlake.rules import paths
from eventlake.rules.errors import SettingsError
from eventlake.rules.types import LakeType
from eventlake.state.lease import Lease, held_lease
from eventlake.state.manifest import RunKind, read_manifest
from tests.support.lakes.archive import track
from tests.support.lakes.retyping import lake_of, target, wish
from tests.support.lakes.runs import SOURCE_ID, Runs


def load(runs: Runs, *times: str) -> None:
    events = (track("Order", f"m{at}", at, a=1, b=1) for at in times)
    runs.archive.day(times[0][:10]).file("a", *events)
    runs.sync()


def test_wishes_add_up_and_are_taken_back(runs: Runs) -> None:
    load(runs, "2026-10-01T07:00")
    wish(runs, "track_order.a", "string")
    wish(runs, "track_order.b", "decimal")
    wish(runs, "track_order.a", "timestamp")
    assert runs.state().wishes == {
        "shop.track_order": {"properties_a": "timestamp", "properties_b": "decimal(38,6)"}
    }
    wish(runs, "track_order.a", "bigint")
    assert runs.state().wishes == {"shop.track_order": {"properties_b": "decimal(38,6)"}}
    wish(runs, "track_order.b", "bigint")
    assert runs.state().wishes == {}


def test_a_wish_is_a_commit_of_its_own_and_no_run(runs: Runs) -> None:
    load(runs, "2026-10-01T07:00")
    wish(runs, "track_order.a", "string")
    manifest = read_manifest(runs.storage, SOURCE_ID, 2)
    assert manifest is not None
    assert (manifest.kind, manifest.partitions, manifest.tables) == (RunKind.RETYPE, (), ())
    assert list(runs.reports()) == ["R1"]
    assert runs.storage.files(paths.open_runs(SOURCE_ID)) == []
    assert runs.storage.read(paths.lease(SOURCE_ID)) is None


def test_a_wish_waits_for_whoever_is_at_work(runs: Runs) -> None:
    load(runs, "2026-10-01T07:00")
    told: list[str] = []

    def waiting(lease: Lease) -> None:
        told.append(lease.work)
        runs.storage.delete(paths.lease(SOURCE_ID))

    with held_lease(runs.storage, SOURCE_ID, "R9", "replay of a day", waiting):
        record_wish(lake_of(runs), target(runs, "track_order.a"), LakeType.STRING, waiting)
    assert told == ["replay of a day"]
    assert runs.state().wishes == {"shop.track_order": {"properties_a": "string"}}


def test_a_wish_that_came_true_in_the_meantime_is_none(runs: Runs) -> None:
    load(runs, "2026-10-01T07:00")
    before = target(runs, "track_order.a")
    wish(runs, "track_order.a", "string")
    runs.replay("2026-10-01", "2026-10-02")
    record_wish(lake_of(runs), before, LakeType.STRING, print)
    assert runs.state().wishes == {}


@pytest.mark.parametrize("changed", [{"date_partition": "day"}, {"naming": "warehouse"}])
def test_a_changed_layout_or_naming_is_refused(runs: Runs, changed: dict[str, str]) -> None:
    load(runs, "2026-10-01T07:00")
    runs.set(**changed)
    [name] = changed
    with pytest.raises(SettingsError, match=f"{name}: .* were made with"):
        wish(runs, "track_order.a", "string")
    assert (runs.state().wishes, runs.state().manifest) == ({}, 1)


def test_the_days_to_replay_are_those_of_the_table_that_a_replay_can_name(runs: Runs) -> None:
    load(runs, "2026-10-02T07:00", "2026-10-04T07:00", "2026-10-01T23:00", "2099-01-01T00:00")
    found = target(runs, "track_order.a")
    assert days_to_replay(lake_of(runs), found) == (date(2026, 10, 2), date(2026, 10, 4))
