"""Whose event a line is."""

import pytest

from eventlake.rules.events import Reject
from eventlake.rules.parse import parse_line
from eventlake.rules.suppression import People
from eventlake.settings.models import Limits

PEOPLE = People(frozenset({"1.50", "7", "zoe"}), frozenset({"1e3", "a1"}))


@pytest.mark.parametrize(
    ("line", "suppressed"),
    [
        ('{"userId": "zoe"}', True),
        ('{"userId": "z\\u006fe"}', True),
        ('{"userId": "Zoe"}', False),
        ('{"userId": "zoe", "userId": "max"}', False),  # the last one counts, as always
        ('{"anonymousId": "a1", "userId": "max"}', True),
        ('{"userId": "a1"}', False),  # the id of a visitor
        ('{"anonymousId": "zoe"}', False),
        ('{"userId": 7}', True),
        ('{"userId": 1.50}', True),
        ('{"userId": 1.5}', False),
        ('{"anonymousId": 1e3}', True),
        ('{"userId": -0}', False),
        ('{"userId": null, "anonymousId": ["a1"]}', False),
        ('{"userId": {"id": "zoe"}}', False),
        ('{"traits": {"userId": "zoe"}, "previousId": "zoe"}', False),
        ("{}", False),
    ],
)
def test_an_event_is_of_the_user_and_the_visitor_it_names(line: str, suppressed: bool) -> None:
    event = parse_line(line.encode(), Limits())
    assert PEOPLE.has(event) is suppressed


@pytest.mark.parametrize(
    ("line", "named"),
    [
        (b'{"userId": "zoe", "type": "tra', True),
        (b'{"context": {"userId":"zoe"}, x', True),
        (b'{"userId": 7, "a": NaN}', True),
        (b'{"userId": "z\\u006fe"', True),
        (b'{"userId": "zo', False),
        (b'{"name": "zoe"', False),
        (b'{"userId": "\xff"', False),
        (b"zoe", False),
    ],
)
def test_who_is_named_in_a_line_that_is_no_event(line: bytes, named: bool) -> None:
    with pytest.raises(Reject):
        parse_line(line, Limits())
    assert PEOPLE.are_named_in(line) is named
