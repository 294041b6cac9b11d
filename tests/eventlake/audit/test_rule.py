"""Of several copies of an event exactly one is in the lake within the window: any one of them."""

import pytest

from eventlake.audit.rule import Demand, Raw, RawVerdict, Row, RowVerdict, judge

WINDOW = 7
LOADED, DUPLICATE, REJECTED, WAITING, MISSING = RawVerdict
FINE, DOUBLED, UNEXPECTED, NOT_JUDGED = RowVerdict


def raw(received: int, table: int = 0, demand: Demand = Demand.REQUIRED) -> Raw:
    return Raw(received, table, demand)


def waits(received: int) -> Raw:
    return raw(received, demand=Demand.WAITING)


def beyond(received: int) -> Raw:
    return raw(received, demand=Demand.BEYOND)


def around(received: int) -> Row:
    return Row(received, 0, judged=False)


@pytest.mark.parametrize(
    ("events", "rows", "of_events", "of_rows"),
    [
        # All is well.
        ([], [], [], []),
        ([raw(0)], [Row(0, 0)], [LOADED], [FINE]),
        ([raw(0), raw(0)], [Row(0, 0)], [LOADED, DUPLICATE], [FINE]),
        ([raw(0), raw(5)], [Row(0, 0)], [LOADED, DUPLICATE], [FINE]),
        ([raw(0), raw(5)], [Row(5, 0)], [DUPLICATE, LOADED], [FINE]),
        ([raw(0), raw(5, table=1)], [Row(5, 1)], [DUPLICATE, LOADED], [FINE]),
        ([raw(0), raw(8)], [Row(0, 0), Row(8, 0)], [LOADED, LOADED], [FINE, FINE]),
        (
            [raw(0), raw(6), raw(12)],
            [Row(0, 0), Row(12, 0)],
            [LOADED, DUPLICATE, LOADED],
            [FINE, FINE],
        ),
        ([raw(0), raw(6), raw(12)], [Row(6, 0)], [DUPLICATE, LOADED, DUPLICATE], [FINE]),
        # Something is missing: of copies within the window only one.
        ([raw(0)], [], [MISSING], []),
        ([raw(0), raw(7)], [], [MISSING, DUPLICATE], []),
        ([raw(0), raw(8)], [], [MISSING, MISSING], []),
        ([raw(0), raw(8)], [Row(0, 0)], [LOADED, MISSING], [FINE]),
        ([raw(0), raw(8)], [Row(8, 0)], [MISSING, LOADED], [FINE]),
        # Something is there twice.
        ([raw(0), raw(0)], [Row(0, 0), Row(0, 0)], [LOADED, DUPLICATE], [FINE, DOUBLED]),
        ([raw(0)], [Row(0, 0), Row(0, 0)], [LOADED], [FINE, DOUBLED]),
        ([raw(0), raw(7)], [Row(0, 0), Row(7, 0)], [LOADED, DUPLICATE], [FINE, DOUBLED]),
        ([raw(0), raw(3, 1)], [Row(0, 0), Row(3, 1)], [LOADED, DUPLICATE], [FINE, DOUBLED]),
        # Something is there that nobody sent.
        ([], [Row(0, 0)], [], [UNEXPECTED]),
        ([raw(0)], [Row(1, 0)], [MISSING], [UNEXPECTED]),
        ([raw(0)], [Row(0, 1)], [MISSING], [UNEXPECTED]),
        ([raw(8)], [Row(0, 0), Row(8, 0)], [LOADED], [UNEXPECTED, FINE]),
        ([raw(0)], [Row(0, 1), Row(8, 0)], [MISSING], [UNEXPECTED, UNEXPECTED]),
        # If it is there for the second time, it is doubled, and never the one that was sent.
        ([raw(5)], [Row(0, 0), Row(5, 0)], [LOADED], [DOUBLED, FINE]),
        ([raw(5)], [Row(5, 0), Row(5, 1)], [LOADED], [FINE, DOUBLED]),
        ([], [Row(0, 0), Row(7, 0), Row(15, 0)], [], [UNEXPECTED, DOUBLED, UNEXPECTED]),
        ([], [around(0), Row(7, 0)], [], [NOT_JUDGED, DOUBLED]),
        # Rows around the range count for comparison, and are not judged.
        ([], [around(0)], [], [NOT_JUDGED]),
        ([raw(5)], [around(0)], [DUPLICATE], [NOT_JUDGED]),
        ([raw(8)], [around(0)], [MISSING], [NOT_JUDGED]),
        ([raw(5)], [around(0), Row(5, 0)], [DUPLICATE], [NOT_JUDGED, DOUBLED]),
        ([raw(5)], [Row(5, 0), around(9)], [DUPLICATE], [DOUBLED, NOT_JUDGED]),
        # What waits need not be there, and may be.
        ([waits(0)], [], [WAITING], []),
        ([waits(0)], [Row(0, 0)], [LOADED], [FINE]),
        ([raw(0), waits(0)], [Row(0, 0)], [LOADED, WAITING], [FINE]),
        ([waits(0), raw(0)], [Row(0, 0)], [WAITING, LOADED], [FINE]),
        ([waits(0), raw(5)], [], [WAITING, MISSING], []),
        ([waits(0), raw(5)], [Row(0, 0)], [LOADED, DUPLICATE], [FINE]),
        # What a limit keeps out is rejected, unless it is there.
        ([beyond(0)], [], [REJECTED], []),
        ([beyond(0)], [Row(0, 0)], [LOADED], [FINE]),
        ([beyond(0), raw(5)], [Row(5, 0)], [REJECTED, LOADED], [FINE]),
    ],
)
def test_verdicts_on_one_id(
    events: list[Raw], rows: list[Row], of_events: list[RawVerdict], of_rows: list[RowVerdict]
) -> None:
    assert judge(events, rows, WINDOW) == (of_events, of_rows)
