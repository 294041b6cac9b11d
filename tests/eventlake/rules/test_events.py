"""What every event must say of itself."""

from typing import Any

import msgspec
import pytest

from eventlake.rules.events import EVENT_TYPES, Envelope, Reason, Reject, open_envelope

RECEIVED = "2026-10-01T12:00:00.123456789+02:00"
MICROS = 1_790_848_800_123_456
TRACK = {"type": "track", "event": "Page View", "messageId": "m1", "receivedAt": RECEIVED}


def test_a_track_has_type_name_id_and_time() -> None:
    assert open_envelope(TRACK) == Envelope("track", "Page View", "m1", MICROS)


@pytest.mark.parametrize("event_type", [name for name in EVENT_TYPES if name != "track"])
def test_the_other_types_have_no_name(event_type: str) -> None:
    opened = open_envelope({**TRACK, "type": event_type})
    assert (opened.type, opened.event) == (event_type, None)


def test_there_are_six_types() -> None:
    assert set(EVENT_TYPES) == {"track", "identify", "page", "screen", "group", "alias"}


@pytest.mark.parametrize("written", ["Track", "TRACK", "tRaCk"])
def test_the_case_of_the_type_is_ignored(written: str) -> None:
    assert open_envelope({**TRACK, "type": written}).type == "track"


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


def test_an_event_may_lack_its_id() -> None:
    event = {key: value for key, value in TRACK.items() if key != "messageId"}
    assert open_envelope(event).message_id is None


def test_a_track_may_be_called_by_a_number() -> None:
    assert open_envelope({**TRACK, "event": msgspec.Raw("1e3")}).event == "1e3"


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
    ],
)
def test_what_cannot_be_loaded_is_refused_with_what_was_seen(
    change: dict[str, Any], reason: Reason, words: str
) -> None:
    with pytest.raises(Reject) as caught:
        open_envelope({**TRACK, **change})
    assert caught.value.reason is reason
    assert words in str(caught.value)


def test_the_type_is_looked_at_first() -> None:
    with pytest.raises(Reject) as caught:
        open_envelope({"type": "delete", "receivedAt": "never"})
    assert caught.value.reason is Reason.UNKNOWN_TYPE
