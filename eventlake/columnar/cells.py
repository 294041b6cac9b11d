"""Parsed events: the values of all of them, and the envelope of each."""

from typing import NamedTuple

import numpy as np

from eventlake.columnar.fields import NONE

ENVELOPE = ("type", "event", "messageId", "receivedAt", "userId", "anonymousId")
TYPE, EVENT, ID, RECEIVED, USER, ANONYMOUS = range(6)


class Cells(NamedTuple):
    """The values of events, in order."""

    field: np.ndarray
    kind: np.ndarray
    start: np.ndarray
    end: np.ndarray


class Events(NamedTuple):
    """The facts of each event; events that are not plain have no cells."""

    plain: np.ndarray
    first_cell: np.ndarray  # with one more entry, the end of the last event
    name: np.ndarray  # the event's name below its type, as a field
    received: np.ndarray  # microseconds since 1970
    envelope: np.ndarray  # the cells of the envelope's fields, NONE where there is none
    payload: np.ndarray


def new_cells(room: int) -> Cells:
    return Cells(
        np.empty(room, np.int32),
        np.empty(room, np.uint8),
        np.empty(room, np.int32),
        np.empty(room, np.int32),
    )


def new_events(events: int) -> Events:
    return Events(
        plain=np.zeros(events, np.bool_),
        first_cell=np.zeros(events + 1, np.int64),
        name=np.full(events, NONE, np.int32),
        received=np.zeros(events, np.int64),
        envelope=np.full((events, len(ENVELOPE)), NONE, np.int32),
        payload=np.zeros(events, np.uint32),
    )
