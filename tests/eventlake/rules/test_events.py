"""Events: their tables, partitions, duplicates and suppression."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from random import Random
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eventlake.columnar.id_hashes import hash_id, words
from eventlake.load.seen import positions
from eventlake.rules import paths
from eventlake.rules.duplicates import Events, find_twins, twins_of_one_id
from eventlake.rules.events import EVENT_TYPES, Envelope, Reason, Reject, open_envelope
from eventlake.rules.names import TABLE_LENGTH
from eventlake.rules.parse import parse_line
from eventlake.rules.partitions import DatePartition
from eventlake.rules.suppression import People
from eventlake.rules.types import LakeType
from eventlake.settings.models import Limits

RECEIVED = "2026-10-01T12:00:00.123456789+02:00"
MICROS = 1_790_848_800_123_456
TRACK = {"type": "track", "event": "Page View", "messageId": "m1", "receivedAt": RECEIVED}


def test_a_track_has_type_name_id_and_time() -> None:
    assert open_envelope(TRACK) == Envelope("track", "Page View", "m1", MICROS)
    for written in ("Track", "TRACK", "tRaCk"):
        assert open_envelope({**TRACK, "type": written}).type == "track"
    assert open_envelope({**TRACK, "event": msgspec.Raw("1e3")}).event == "1e3"
    assert set(EVENT_TYPES) == {"track", "identify", "page", "screen", "group", "alias"}


@pytest.mark.parametrize("event_type", [name for name in EVENT_TYPES if name != "track"])
def test_the_other_types_have_no_name(event_type: str) -> None:
    opened = open_envelope({**TRACK, "type": event_type})
    assert (opened.type, opened.event) == (event_type, None)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("m1", "m1"),
        (" ", " "),
        (42, "42"),
        (10**30, "1" + "0" * 30),
        (msgspec.Raw("1.50"), "1.50"),
        (msgspec.Raw("-0"), "-0"),
        ("", None),
        (None, None),
        (True, None),
        (["m1"], None),
        ({"id": "m1"}, None),
    ],
)
def test_an_id_is_a_text_or_a_number_as_written(value: Any, text: str | None) -> None:
    assert open_envelope({**TRACK, "messageId": value}).message_id == text
    event = {key: value for key, value in TRACK.items() if key != "messageId"}
    assert open_envelope(event).message_id is None


@pytest.mark.parametrize(
    ("change", "reason", "words"),
    [
        ({"type": "delete"}, Reason.UNKNOWN_TYPE, 'it is "delete"'),
        ({"type": "track "}, Reason.UNKNOWN_TYPE, 'it is "track "'),
        ({"type": None}, Reason.UNKNOWN_TYPE, "there is none"),
        ({"type": 1}, Reason.UNKNOWN_TYPE, "it is 1"),
        ({"type": ["track"]}, Reason.UNKNOWN_TYPE, 'it is ["track"]'),
        ({"event": None}, Reason.NO_EVENT_NAME, "there is none"),
        ({"event": ""}, Reason.NO_EVENT_NAME, 'it is ""'),
        ({"event": " \t"}, Reason.NO_EVENT_NAME, "it is"),
        ({"event": True}, Reason.NO_EVENT_NAME, "it is true"),
        ({"event": {"a": msgspec.Raw("1.0")}}, Reason.NO_EVENT_NAME, 'it is {"a":1.0}'),
        ({"receivedAt": None}, Reason.NO_RECEIVED_AT, "there is none"),
        ({"receivedAt": "yesterday"}, Reason.NO_RECEIVED_AT, 'it is "yesterday"'),
        ({"receivedAt": 1790848800}, Reason.NO_RECEIVED_AT, "it is 1790848800"),
        ({"receivedAt": "x" * 99}, Reason.NO_RECEIVED_AT, "xxx…"),
        ({"type": "delete", "receivedAt": "never"}, Reason.UNKNOWN_TYPE, 'it is "delete"'),
    ],
)
def test_bad_events_are_refused(change: dict[str, Any], reason: Reason, words: str) -> None:
    with pytest.raises(Reject) as caught:
        open_envelope({**TRACK, **change})
    assert caught.value.reason is reason
    assert words in str(caught.value)


AT = datetime(2020, 5, 11, 11, 59, 59, 999_999, tzinfo=UTC)
HOUR, DAY = datetime(2020, 5, 11, 11, tzinfo=UTC), datetime(2020, 5, 11, tzinfo=UTC)


@pytest.mark.parametrize(
    ("layout", "path", "start"),
    [
        ("day/hour", "day=2020-05-11/hr=11", HOUR),
        ("year/month/day/hour", "year=2020/month=05/day=11/hr=11", HOUR),
        ("year/month/day", "year=2020/month=05/day=11", DAY),
        ("day", "day=2020-05-11", DAY),
    ],
)
def test_each_layout_has_its_folders_and_its_start(layout: str, path: str, start: datetime) -> None:
    partition = DatePartition(layout)
    assert partition.path(AT) == path
    assert partition.floor(AT) == start
    assert partition.has_hours == ("hr=" in path)
    assert partition.keys == tuple(part.split("=")[0] for part in path.split("/"))
    assert partition.values(AT) == tuple(part.split("=")[1] for part in path.split("/"))


def test_the_hour_is_that_of_utc() -> None:
    at_home = datetime(2020, 5, 11, 1, 30, tzinfo=timezone(timedelta(hours=2)))
    assert DatePartition.DAY_HOUR.path(at_home) == "day=2020-05-10/hr=23"
    assert DatePartition.DAY.floor(at_home) == datetime(2020, 5, 10, tzinfo=UTC)
    with pytest.raises(ValueError, match="no time zone"):
        DatePartition.DAY.path(datetime(2020, 5, 11))


@given(st.sampled_from(DatePartition), st.datetimes(timezones=st.just(UTC)))
def test_the_values_of_a_partition_are_read_back(layout: DatePartition, at: datetime) -> None:
    assert layout.parse(layout.values(at)) == layout.floor(at)


@pytest.mark.parametrize(
    ("layout", "values", "reason"),
    [
        ("day/hour", ("2020-05-11", "24"), "hour must be in"),
        ("day/hour", ("20200511", "11"), "is not spelled like a partition of day/hour"),
        ("day/hour", ("2020-05-11",), "shorter"),
        ("day", ("2020-02-30",), "day .*range"),
        ("year/month/day", ("2020", "5", "11"), "Invalid isoformat string"),
    ],
)
def test_impossible_values_are_refused(layout: str, values: tuple[str, ...], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        DatePartition(layout).parse(values)


def test_an_unpublished_file_has_its_final_name_in_its_name() -> None:
    name = paths.unpublished_name("track_order", "day=2026-10-01/hr=07", "R1-0-3.parquet")
    assert name == "segment_type=track_order,day=2026-10-01,hr=07,R1-0-3.parquet"
    waiting = f"segment-stage/S1/R1/0/{name}"
    assert paths.published_name(waiting) == "R1-0-3.parquet"
    assert paths.published_name(paths.unique_path(waiting, "8f3a0")) == "R1-0-3.parquet"
    assert paths.is_unpublished(waiting) and not paths.is_unpublished(
        "segment-data/data/S1/day=2026-10-01/R1-0"
    )


def test_names_of_unpublished_files_are_unique_and_short_enough() -> None:
    partition, file = "year=2026/month=10/day=01/hr=07", f"{10**18}-100-1000.parquet"
    longest = ("t" * (TABLE_LENGTH - 1) + last for last in ("a", "b"))
    names = {paths.unpublished_name(table, partition, file) for table in longest}
    assert len(names) == 2
    hidden = len("..") + 32 + 8  # as long as it is written, with what makes that name its own
    assert max(map(len, names)) + hidden <= 255


@pytest.mark.parametrize(
    ("sql", "arrow"),
    [
        ("bigint", pa.int64()),
        ("boolean", pa.bool_()),
        ("decimal(38,6)", pa.decimal128(38, 6)),
        ("string", pa.string()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
    ],
)
def test_a_type_is_known_by_its_sql_and_has_its_arrow_type(sql: str, arrow: pa.DataType) -> None:
    assert LakeType(sql).sql == sql
    assert LakeType(sql).arrow == arrow
    assert len(LakeType) == 5


WINDOW = 7


@pytest.mark.parametrize(
    ("received", "in_lake", "twins"),
    [
        ([0], [], [None]),
        ([0, 0], [], [None, 0]),
        ([0, 7], [], [None, 0]),
        ([0, 8], [], [None, None]),
        # Only what is kept counts: 6 is a duplicate of 0, and 10 would have been one of 6.
        ([0, 6, 10], [], [None, 0, None]),
        ([0, 6, 10, 12], [], [None, 0, None, 2]),
        ([10], [3], [0]),
        ([10], [2], [None]),
        ([10], [17], [0]),  # what the lake has is kept, though it came later
        ([10], [18], [None]),
        ([10, 20], [15], [0, 0]),
        ([10, 11], [3, 17], [0, 1]),  # the lake's are counted first
        ([0, 1], [30], [None, 1]),
        ([0, 7, 14], [30], [None, 1, None]),
    ],
)
def test_at_most_a_window_apart_is_a_duplicate(
    received: list[int], in_lake: list[int], twins: list[int | None]
) -> None:
    """The twin of a duplicate is a number among the rows of the lake, then the events."""
    assert twins_of_one_id(received, in_lake, WINDOW) == twins


@dataclass(frozen=True)
class Event:
    id: str
    received: int
    file: int
    line: int


@dataclass(frozen=True)
class InLake:
    id: str
    received: int


def plainly(events: list[Event], lake: list[InLake]) -> set[tuple[int, int]]:
    """The places of the duplicates, by the words of the rule."""
    kept: list[Event | InLake] = list(lake)
    places = set()
    for event in sorted(events, key=lambda e: (e.received, e.file, e.line)):
        near = [k for k in kept if k.id == event.id and abs(k.received - event.received) <= WINDOW]
        if near:
            places.add((event.file, event.line))
        else:
            kept.append(event)
    return places


def fast(events: list[Event], lake: list[InLake], hashes: dict[str, bytes]) -> set[tuple[int, int]]:
    def ids_of(found: list[Event] | list[InLake]) -> np.ndarray:
        return words(pa.array([hashes[one.id] for one in found], pa.binary(16)))

    where = positions(
        np.array([e.file for e in events], dtype=np.int32),
        np.array([e.line for e in events], dtype=np.int32),
    )
    received = np.array([e.received for e in events], dtype=np.int64)
    lake_received = np.array([e.received for e in lake], dtype=np.int64)
    held = Events(ids_of(lake), lake_received)
    twins = find_twins(Events(ids_of(events), received, where), held, WINDOW)
    everyone = [*events, *lake]
    for event, twin in zip(events, twins, strict=True):
        assert twin < 0 or everyone[twin].id == event.id
        assert twin < 0 or abs(everyone[twin].received - event.received) <= WINDOW
    return {(e.file, e.line) for e, twin in zip(events, twins, strict=True) if twin >= 0}


NAMES = ["a", "b", "c", "d"]
# The first two differ only in the second half of the hash, the last two only in the first.
ALIKE = dict(
    zip(
        NAMES,
        (bytes(15) + b"\1", bytes(15) + b"\2", b"\xff" * 8 + b"\3" * 8, b"\xfe" * 8 + b"\3" * 8),
        strict=True,
    )
)
HASHED = {name: hash_id(name) for name in NAMES}
TIMES = st.integers(-10, 30)
EVENTS = st.lists(
    st.builds(Event, st.sampled_from(NAMES), TIMES, st.integers(0, 2), st.integers(1, 40)),
    max_size=12,
    unique_by=lambda event: (event.file, event.line),
)
LAKES = st.lists(st.builds(InLake, st.sampled_from(NAMES), TIMES), max_size=6)


@given(EVENTS, LAKES, st.sampled_from([ALIKE, HASHED]))
@example([], [InLake("a", 0)], HASHED)
@example([Event("a", 0, 1, 1), Event("a", 0, 0, 2), Event("a", 0, 0, 1)], [], ALIKE)
@example([Event("a", 0, 0, 1)], [InLake("b", 0)], ALIKE)
def test_all_ids_together_are_compared_like_each_alone(
    events: list[Event], lake: list[InLake], hashes: dict[str, bytes]
) -> None:
    assert fast(events, lake, hashes) == plainly(events, lake)


@given(EVENTS, LAKES, st.randoms(use_true_random=False))
def test_the_order_of_events_does_not_matter(
    events: list[Event], lake: list[InLake], chance: Random
) -> None:
    shuffled = chance.sample(events, len(events))
    assert fast(shuffled, lake[::-1], HASHED) == fast(events, lake, HASHED)


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
    assert PEOPLE.has(parse_line(line.encode(), Limits())) is suppressed


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
def test_suppressed_ids_are_found_in_broken_lines(line: bytes, named: bool) -> None:
    with pytest.raises(Reject):
        parse_line(line, Limits())
    assert PEOPLE.are_named_in(line) is named
