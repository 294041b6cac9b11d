"""The tree of errors: drawn as it is, and with the codes that commands and reports show."""

import re

import pytest

from lake import errors
from lake.errors import LakeError, Problem, SettingsError, did_you_mean


def test_the_drawing_shows_every_error_below_its_parent() -> None:
    parents: list[str] = []
    for indent, name in re.findall(r"(?m)^([│├└─ ]*)(\w+) ", errors.__doc__ or ""):
        del parents[len(indent) // 4 :]
        assert not parents or getattr(errors, name).__base__.__name__ == parents[-1]
        parents.append(name)
    drawn = set(re.findall(r"(?m)^[│├└─ ]*(\w+) ", errors.__doc__ or ""))
    defined = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, LakeError)
    }
    assert defined <= drawn


@pytest.mark.parametrize(
    ("name", "exit_code", "error_code"),
    [
        ("LakeError", 1, "Segment.Internal"),
        ("SettingsError", 2, "Segment.InvalidSettings"),
        ("UsageError", 2, "Segment.InvalidSettings"),
        ("UnknownSource", 2, "Segment.InvalidSettings"),
        ("StateError", 1, "Segment.Internal"),
        ("ConservationError", 1, "Segment.Internal"),
        ("CheckFailed", 1, "Segment.Internal"),
        ("CommitConflict", 1, "Segment.Internal"),
        ("LeaseHeld", 1, "Segment.Internal"),
    ],
)
def test_an_error_has_its_codes(name: str, exit_code: int, error_code: str) -> None:
    error = getattr(errors, name)
    assert (error.exit_code, error.error_code) == (exit_code, error_code)


def test_a_settings_error_lists_its_problems() -> None:
    error = SettingsError(
        "lake.yaml cannot be used.",
        [Problem("lake.yaml:2 storage", "missing", "allowed: a folder"), Problem("a", "b", "c")],
    )
    assert str(error) == (
        "lake.yaml cannot be used.\n  lake.yaml:2 storage: missing; allowed: a folder\n  a: b; c"
    )


def test_only_near_words_are_suggested() -> None:
    assert did_you_mean("regoin", ["region", "engine"]) == "; did you mean 'region'?"
    assert did_you_mean("colour", ["region", "engine"]) == ""
