"""Wishes and shadows in the state of a source."""

from typing import Any

from eventlake.rules.types import LakeType
from eventlake.state.manifest import PartitionChange, Wish
from eventlake.state.source_state import SourceState
from tests.eventlake.state.test_source_state import GROWN, HOUR, change, manifest

WISH = Wish("shop.page", "b", LakeType.STRING)
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
    state = folded(
        {"tables": (GROWN,), "wishes": (WISH,)},
        {"switching": ("shop.page",), "partitions": (change(3),), "shadows": (shadow(3),)},
        {"switching": ("shop.page",), "partitions": (change(5, 3),), "shadows": (shadow(5),)},
    )
    [held] = state.shadows["shop.page"].values()
    assert (held.values, held.location, held.version, held.rows) == (HOUR, "shadow", 3, 5)


def test_a_partition_that_changes_without_its_shadow_has_none() -> None:
    begun = {
        "switching": ("shop.page",),
        "partitions": (change(3),),
        "shadows": (shadow(3), shadow(4, LATER)),
    }
    state = folded({"wishes": (WISH,)}, begun, {"partitions": (change(9, 3),)})
    assert rows_in_shadows(state) == {"shop.page": {"2026-10-01/08": 4}}
    gone = folded({"wishes": (WISH,)}, begun, {"partitions": (change(0, 3, dropped=True),)})
    assert rows_in_shadows(gone) == {"shop.page": {"2026-10-01/08": 4}}


def test_another_wish_makes_shadows_worthless() -> None:
    begun = {"switching": ("shop.page",), "shadows": (shadow(3),)}
    for again in (LakeType.BOOLEAN, None):
        changed = Wish("shop.page", "b", again)
        state = folded({"wishes": (WISH,)}, begun, {"wishes": (changed,)})
        assert state.shadows == {}
    other = Wish("shop.screen", "b", LakeType.STRING)
    state = folded({"wishes": (WISH,)}, begun, {"wishes": (other,)})
    assert rows_in_shadows(state) == {"shop.page": {"2026-10-01/07": 3}}


def test_the_switch_fulfils_the_wishes_of_its_tables_only() -> None:
    other = Wish("shop.screen", "b", LakeType.STRING)
    state = folded(
        {"tables": (GROWN,), "wishes": (WISH, other)},
        {"switching": ("shop.page",), "partitions": (change(3),), "shadows": (shadow(3),)},
        {"retyped": ("shop.page",), "tables": (GROWN.with_types({"b": LakeType.STRING}),)},
    )
    assert state.wishes == {"shop.screen": {"b": LakeType.STRING}}
    assert (state.shadows, state.rows) == ({}, {"shop.page": 3})
    assert state.tables["shop.page"].types()["b"] is LakeType.STRING


def test_a_table_that_is_begun_has_no_shadow_yet() -> None:
    state = folded({"wishes": (WISH,)}, {"switching": ("shop.page",)})
    assert state.shadows == {"shop.page": {}}
