"""The state has every partition with its files; lakes of earlier releases are carried over."""

import msgspec

from eventlake.rules import paths
from eventlake.state.partitions import Partitions, held_files
from tests.support.lakes.archive import order
from tests.support.lakes.glue_runs import story
from tests.support.lakes.runs import SOURCE_ID, Runs
from tests.support.oracles.invariants import check_invariants


def check_pages(runs: Runs) -> None:
    """They agree with the catalog, and with what lies in each folder."""
    state, partitions = runs.state(), Partitions(runs.storage, runs.catalog)
    assert state.paged
    for schema in state.tables.values():
        held = partitions.of(state, schema)
        shown = runs.partitions(schema.name).values()
        bare = [msgspec.structs.replace(one, held=()) for one in held]
        assert bare == [msgspec.structs.replace(one, held=()) for one in shown]
        for partition in held:
            assert {*partition.held} == {*held_files(runs.storage, partition.location)}
            assert len(partition.held) == partition.files


def as_an_earlier_release_left_it(runs: Runs) -> None:
    """Only the embedded catalog has pages, and these without files; none has them on Glue."""
    storage = runs.storage
    if runs.catalog.follows:
        storage.delete_folder(paths.CATALOG)
    state = paths.state_file(SOURCE_ID)
    for file in [*storage.files(paths.CATALOG), *storage.files(state.rpartition("/")[0])]:
        if file.name.endswith(".json"):
            old = msgspec.json.decode(storage.read(file.path) or b"")
            old["format_version"] = 2
            for name in ("paged", "retyped") if file.path == state else ():
                old.pop(name)
            for change in [*old.get("partitions", ()), *old.get("shadows", ())]:
                for name in ("held", "kept"):
                    change.pop(name, None)
            storage.write(file.path, msgspec.json.encode(old))


def test_every_lake_has_pages_with_its_files(in_each_catalog: Runs) -> None:
    story(in_each_catalog)
    check_pages(in_each_catalog)


def test_a_lake_of_an_earlier_release_is_carried_over(in_each_catalog: Runs) -> None:
    runs = in_each_catalog
    story(runs)
    before = {table: runs.rows(table) for table in runs.tables()}
    as_an_earlier_release_left_it(runs)
    assert not runs.state().paged
    assert {table: runs.rows(table) for table in runs.tables()} == before
    runs.load("2026-10-02", order("m9", "2026-10-02T00:20", n="x"), name="c")
    check_pages(runs)
    check_invariants(runs)
    assert "m9" in runs.ids("track_order")
    runs.replay("2026-10-01", "2026-10-03")
    check_pages(runs)
    check_invariants(runs)
