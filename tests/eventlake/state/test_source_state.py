"""The state of a source: what manifests add up to, each counted once."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from eventlake.rules.counts import UnitReport
from eventlake.rules.errors import CommitConflict
from eventlake.rules.types import Column, LakeType, TableSchema
from eventlake.settings.models import Source
from eventlake.state.manifest import (
    IndexFile,
    Manifest,
    PartitionChange,
    RunKind,
    TypeRequest,
    commit,
    read_manifest,
)
from eventlake.state.report import RunFacts
from eventlake.state.source_state import SourceState, read_state, write_state
from eventlake.storage import LocalStorage, Storage

RUN = RunFacts("W1", "S1", "shop", "R1", datetime(2026, 10, 1, tzinfo=UTC), "lake")
PAGE = TableSchema("page", "shop", "page", "Page", (Column("a", LakeType.STRING, "/a"),))
GROWN = PAGE.with_columns((Column("b", LakeType.BIGINT, "/b"),))
HOUR = ("2026-10-01", "07")


def manifest(number: int, **content: Any) -> Manifest:
    nothing: dict[str, Any] = {
        "source_id": "S1",
        "kind": RunKind.SYNC,
        "run": RUN,
        "date_partition": "day/hour",
        "naming": "native",
        "tables": (),
        "partitions": (),
        "ledger": (),
        "index_added": (),
        "index_days_replaced": (),
        "records": (),
        "report": UnitReport(),
        "finish_time": None,
    }
    return Manifest(number, **nothing | content)


def change(rows: int, before: int = 0, dropped: bool = False) -> PartitionChange:
    return PartitionChange("shop.page", HOUR, "x", (), rows, 0, 0, before, dropped)


def index_file(day: str, name: str) -> IndexFile:
    return IndexFile(day, name, 1, (0, 16))


def test_manifests_add_up_and_one_that_is_in_changes_nothing() -> None:
    first = manifest(
        1,
        tables=(PAGE,),
        partitions=(change(3),),
        index_added=(index_file("2026-10-01", "i1"), index_file("2026-10-02", "i2")),
        start="2026-10-01",
    )
    second = manifest(
        2,
        tables=(GROWN,),
        partitions=(change(5, before=3),),
        index_added=(index_file("2026-10-01", "i3"),),
        index_days_replaced=("2026-10-01",),
        start="2026-09-01",
        date_partition="day",
    )
    state = SourceState("S1").after(first).after(second)
    assert state.after(first) == state.after(second) == state
    assert state.manifest == 2
    assert state.start == "2026-10-01"
    assert state.tables == {"shop.page": GROWN}
    assert state.rows == {"shop.page": 5}
    assert state.layouts["shop.page"].date_partition == "day/hour"
    files = {"2026-10-01": "i3", "2026-10-02": "i2"}
    assert state.index == {day: (index_file(day, name),) for day, name in files.items()}


def test_dropped_partitions_are_remembered() -> None:
    made = manifest(1, tables=(PAGE,), partitions=(change(3),))
    gone = manifest(2, partitions=(change(0, before=3, dropped=True),))
    state = SourceState("S1").after(made).after(gone)
    assert (state.rows, state.dropped) == ({"shop.page": 0}, {"shop.page": {HOUR}})


def test_the_tables_of_a_source_are_those_where_it_writes_now() -> None:
    prefixed = msgspec.structs.replace(PAGE, name="web_page")
    elsewhere = msgspec.structs.replace(PAGE, database="new")
    state = SourceState("S1").after(manifest(1, tables=(PAGE, prefixed, elsewhere)))

    def tables(**settings: Any) -> dict[str, TableSchema]:
        source = Source.model_validate({"id": "S1", "slug": "shop", **settings})
        return state.tables_of(source)

    assert tables() == {"page": PAGE}
    assert tables(table_prefix="web") == {"page": prefixed}
    assert tables(database="new") == {"page": elsewhere}
    assert tables(database="newer") == {}


@pytest.fixture
def storage(tmp_path_factory: pytest.TempPathFactory) -> Storage:
    return LocalStorage(str(tmp_path_factory.mktemp("lake")))


def test_a_state_is_read_as_it_was_written(storage: Storage) -> None:
    assert read_state(storage, "S1") == SourceState("S1", paged=True)
    made = manifest(1, tables=(PAGE,), partitions=(change(0, dropped=True),))
    state = SourceState("S1").after(made)
    write_state(storage, state)
    assert read_state(storage, "S1") == state


def test_a_manifest_is_committed_once(storage: Storage) -> None:
    commit(storage, manifest(1, start="2026-10-01"))
    with pytest.raises(CommitConflict, match="Another run committed manifest 1"):
        commit(storage, manifest(1, start="2026-10-02"))
    found = read_manifest(storage, "S1", 1)
    assert found == manifest(1, start="2026-10-01")
    assert read_manifest(storage, "S1", 2) is None


REQUEST = TypeRequest("shop.page", "b", LakeType.STRING)
LATER = ("2026-10-01", "08")


def shadow(rows: int, values: tuple[str, ...] = HOUR) -> PartitionChange:
    return PartitionChange("shop.page", values, "shadow", (), rows, 10, 1)


def folded(*contents: dict[str, Any]) -> SourceState:
    state = SourceState("S1")
    for number, content in enumerate(contents, 1):
        state = state.after(manifest(number, **content))
    return state


def rows_in_shadows(state: SourceState) -> dict[str, dict[str, int]]:
    return {t: {p: one.rows for p, one in held.items()} for t, held in state.shadows.items()}


def test_a_shadow_is_known_by_the_manifest_that_last_changed_it() -> None:
    begun = {"switching": ("shop.page",)}
    state = folded({"requested_types": (REQUEST,)}, begun)
    assert state.shadows == {"shop.page": {}}
    state = folded(
        {"tables": (GROWN,), "requested_types": (REQUEST,)},
        {**begun, "partitions": (change(3),), "shadows": (shadow(3),)},
        {**begun, "partitions": (change(5, 3),), "shadows": (shadow(5),)},
    )
    [held] = state.shadows["shop.page"].values()
    assert (held.values, held.location, held.version, held.rows) == (HOUR, "shadow", 3, 5)


@pytest.mark.parametrize("changed", [change(9, 3), change(0, 3, dropped=True)])
def test_a_partition_that_changes_without_its_shadow_has_none(changed: PartitionChange) -> None:
    shadows = (shadow(3), shadow(4, LATER))
    begun = {"switching": ("shop.page",), "partitions": (change(3),), "shadows": shadows}
    state = folded({"requested_types": (REQUEST,)}, begun, {"partitions": (changed,)})
    assert rows_in_shadows(state) == {"shop.page": {"2026-10-01/08": 4}}


def test_another_request_makes_shadows_worthless() -> None:
    begun = {"switching": ("shop.page",), "shadows": (shadow(3),)}
    for again in (LakeType.BOOLEAN, None):
        changed = TypeRequest("shop.page", "b", again)
        state = folded({"requested_types": (REQUEST,)}, begun, {"requested_types": (changed,)})
        assert state.shadows == {}
    other = TypeRequest("shop.screen", "b", LakeType.STRING)
    state = folded({"requested_types": (REQUEST,)}, begun, {"requested_types": (other,)})
    assert rows_in_shadows(state) == {"shop.page": {"2026-10-01/07": 3}}


def test_the_switch_fulfils_the_requests_of_its_tables_only() -> None:
    other = TypeRequest("shop.screen", "b", LakeType.STRING)
    state = folded(
        {"tables": (GROWN,), "requested_types": (REQUEST, other)},
        {"switching": ("shop.page",), "partitions": (change(3),), "shadows": (shadow(3),)},
        {"retyped": ("shop.page",), "tables": (GROWN.with_types({"b": LakeType.STRING}),)},
    )
    assert state.requested_types == {"shop.screen": {"b": LakeType.STRING}}
    assert (state.shadows, state.rows) == ({}, {"shop.page": 3})
    assert state.tables["shop.page"].types()["b"] is LakeType.STRING
