"""Two deliveries of one message have one payload; another message under its id has not."""

import pytest

from eventlake.load.payloads import payload_hash
from eventlake.state.id_index import UNKNOWN

EVENT = {
    "messageId": "m1",
    "type": "track",
    "event": "Order",
    "receivedAt": "2026-10-01T07:00:00Z",
    "sentAt": "2026-10-01T06:59:59Z",
    "timestamp": "2026-10-01T06:59:58Z",
    "properties": {"total": 1},
}


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({}, True),
        ({"receivedAt": "2026-10-02T07:00:00Z"}, True),
        ({"sentAt": "2026-10-02T07:00:00Z", "timestamp": "2026-10-02T07:00:00Z"}, True),
        ({"properties": {"total": 2}}, False),
        ({"event": "Order Refunded"}, False),
        ({"userId": "u1"}, False),
    ],
)
def test_only_what_the_transport_stamps_may_differ(change: dict[str, object], same: bool) -> None:
    assert (payload_hash(EVENT) == payload_hash(EVENT | change)) is same


def test_no_event_has_the_hash_that_means_unknown() -> None:
    assert payload_hash({}) != UNKNOWN
