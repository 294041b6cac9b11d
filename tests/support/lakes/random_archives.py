"""Random archives and stories."""

from dataclasses import dataclass, field
from typing import Any

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.support.json_values import ANY
from tests.support.lakes.archive import Line

DAYS = ("2026-10-01", "2026-10-02", "2026-10-09")
TIMES = st.one_of(
    # A week apart, and a microsecond more and less.
    st.sampled_from(
        [
            "2026-10-01T07:00:00Z",
            "2026-10-08T07:00:00Z",
            "2026-10-08T07:00:00.000001Z",
            "2026-10-08T06:59:59.999999Z",
            "2026-10-15T07:00:00Z",
        ]
    ),
    st.builds(
        lambda day, hour, rest: f"{day}T{hour}{rest}",
        st.sampled_from(DAYS),
        st.sampled_from(["00", "07", "23"]),
        st.sampled_from([":00Z", ":30:00.5", ":59:59.9999999Z", ":00+02:00"]),
    ),
    st.sampled_from(DAYS),
)
BAD_TIMES: SearchStrategy[Any] = st.sampled_from([None, "", "yesterday", 5, "2026-02-30"])
FAR_TIMES = st.sampled_from(["0001-01-01", "0999-05-05T05:00Z", "9999-12-31T23:59:59Z"])
IDS: SearchStrategy[Any] = st.one_of(
    st.sampled_from(["m1", "m2", "m3", "m4", "m5", "m6", "m7", 8, msgspec.Raw("1e3")]),
    st.sampled_from([None, "", True, [1], {"a": 1}]),
)
PEOPLE: SearchStrategy[Any] = st.sampled_from(["u1", "u2", "ü3", 4, msgspec.Raw("1.0"), None, True])
OTHER_TYPES = ["identify", "page", "screen", "group", "alias", "Track", "delete", None]
TYPES = st.sampled_from(["track"] * 7 + OTHER_TYPES)
NAMES = st.sampled_from(["Order", "Order", "order!", "注册", "identifies", 7, "", None, ["x"]])
_PLAIN_KEYS = ("a", "A", "a_b", "aB", "b", "", "注", "x/y~")
_STANDARD_KEYS = ("id", "message_id", "userId", "user_id", "timestamp", "name", "event", "sentAt")
_TYPED_KEYS = ("category", "event_text", "groupId", "previous_id")  # of some event types
_TAKEN_KEYS = ("day", "hr", "Rescued Data", "Received At")
KEYS = st.sampled_from((*_PLAIN_KEYS, *_STANDARD_KEYS, *_TYPED_KEYS, *_TAKEN_KEYS))
VALUES: SearchStrategy[Any] = st.one_of(
    ANY, st.sampled_from([None, {}, "", 1, 2, True, "2026-10-01"])
)
OBJECTS = st.recursive(
    st.dictionaries(KEYS, VALUES, max_size=3),
    lambda inner: st.dictionaries(KEYS, st.one_of(VALUES, inner), max_size=3),
    max_leaves=6,
)
BAD_LINES = st.sampled_from(
    [b"", b"  ", b"{", b"[1]", b"null", b'{"a":NaN}', b'{"a":"\xff"}', b'{"a":"\\ud800"}', b"{}x"]
)


@st.composite
def events(draw: st.DrawFn) -> dict[str, Any]:
    event = {
        "messageId": draw(IDS),
        "type": draw(TYPES),
        "event": draw(NAMES),
        "receivedAt": draw(st.one_of(*[TIMES] * 12, BAD_TIMES, FAR_TIMES)),
        **draw(OBJECTS),
    }
    named = [(), ("userId",), ("anonymousId",), ("userId", "anonymousId")]
    for key in draw(st.sampled_from(named)):
        event[key] = draw(PEOPLE)
    if draw(st.booleans()):
        event[draw(st.sampled_from(["properties", "traits"]))] = draw(OBJECTS)
    order = draw(st.permutations(list(event)))
    return {key: event[key] for key in order}


LINES: SearchStrategy[list[Line]] = st.lists(
    st.one_of(events(), events(), events(), events(), BAD_LINES), max_size=6
)


@dataclass(frozen=True)
class Suppressed:
    """The suppressed ids during a step."""

    users: tuple[str, ...] = ()
    visitors: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sync:
    """New files, by day folder and name, and a sync of them."""

    files: dict[tuple[str, str], list[Line]]
    suppressed: Suppressed = Suppressed()


@dataclass(frozen=True)
class Replay:
    """A replay of some days; of some tables only, if there are any."""

    start: str
    end: str
    tables: frozenset[str]
    suppressed: Suppressed = Suppressed()


@dataclass(frozen=True)
class Story:
    """Settings of a source and what happens to it."""

    settings: dict[str, Any]
    steps: list[Sync | Replay]
    tasks: int = field(default=1)


@st.composite
def stories(draw: st.DrawFn, suppression: bool = False) -> Story:
    """With `suppression`, people are suppressed, or no longer are, from one step to the next."""
    settings = {
        "start": DAYS[0],
        "naming": draw(st.sampled_from(["native", "warehouse"])),
        "date_partition": draw(
            st.sampled_from(["day/hour", "year/month/day/hour", "year/month/day", "day"])
        ),
        "load_without_message_id": draw(st.booleans()),
        "skip_events": draw(st.sampled_from([[], ["page", "pages"]])),
        "table_prefix": draw(st.sampled_from([None, "web"])),
        "unit_bytes": draw(st.sampled_from([1, 10**9])),
    }
    some = st.lists(st.sampled_from(["u1", "ü3", "4", "1.0", "x"]), max_size=2).map(tuple)
    people = st.builds(Suppressed, some, some) if suppression else st.just(Suppressed())
    steps: list[Sync | Replay] = []
    for number in range(draw(st.integers(1, 3))):
        place = st.tuples(st.sampled_from(DAYS), st.sampled_from("abc"))
        places = draw(st.lists(place, min_size=1, max_size=3, unique=True))
        files = {(day, f"{name}{number}"): draw(LINES) for day, name in places}
        steps.append(Sync(files, draw(people)))
        if draw(st.integers(0, 3)) == 0:
            two_days = st.lists(st.sampled_from(DAYS), min_size=2, max_size=2, unique=True)
            start, end = sorted(draw(two_days))
            tables = draw(st.sampled_from([(), (), ("track_order", "order"), ("identify",)]))
            steps.append(Replay(start, end, frozenset(tables), draw(people)))
    return Story(settings, steps, draw(st.integers(1, 3)))
