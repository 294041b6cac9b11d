"""Numbers, times and errors in the words of a terminal."""

import pytest

from datalake_assets.cli.text import headline, plain, plural, size, span


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (9_940, "9.9 kB"),
        (9_950, "10 kB"),
        (999_499, "999 kB"),
        (999_500, "1.0 MB"),
        (123_456_789, "123 MB"),
        (5 * 10**18, "5000 PB"),
        (None, "-"),
    ],
)
def test_sizes_have_three_digits(count: int | None, shown: str) -> None:
    assert size(count) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-1, "0.0 s"),
        (0.44, "0.4 s"),
        (10, "10 s"),
        (59.6, "1 min"),
        (61, "1 min 1 s"),
        (3600, "1 h"),
        (3659, "1 h"),
        (7384, "2 h 3 min"),
        (86_400 * 44 + 3600 * 7 + 59, "44 d 7 h"),
        (86_400 + 59, "1 d"),
    ],
)
def test_lengths_of_time_have_two_units(seconds: float, shown: str) -> None:
    assert span(seconds) == shown


@pytest.mark.parametrize(("count", "shown"), [(0, "0 rows"), (1, "1 row"), (2000, "2,000 rows")])
def test_nouns_follow_their_number(count: int, shown: str) -> None:
    assert plural(count, "row") == shown


def test_control_characters_are_shown_and_letters_of_the_world_stay() -> None:
    assert plain("a\tb\r\n\x00\x1b\x9b Ж 李雷 🎉") == r"a\tb\r\n\x00\x1b\x9b Ж 李雷 🎉"


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        ("first\nsecond", "first"),
        ("X: y\nTraceback (most recent call last):\n  File z\nOSError: full\n", "OSError: full"),
        ("", "unknown"),
        (None, "unknown"),
    ],
)
def test_an_error_fits_into_a_line(error: str | None, shown: str) -> None:
    assert headline(error) == shown
