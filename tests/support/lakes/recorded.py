"""The only raw file of a lake, with a record of every kind except a suppressed one."""

import shutil

from eventlake.lake import Lake
from eventlake.rules import paths
from tests.support.lakes.archive import Line, identify, order, page

FILE = "segment-logs/S1/1790812800000/a.gz"


LINES: tuple[Line, ...] = (
    order("m1", "2026-10-01T07:00", price=1),
    order("m1", "2026-10-01T07:30", price=1),
    "{",
    page("p1", "2026-10-01T08:00"),
    identify(None, "2026-10-01T08:00"),
    {"type": "delete", "messageId": "d1", "receivedAt": "2026-10-01T09:00"},
    order("m2", "2026-10-01T07:10", price=2),
)


def expire(lake: Lake, run_id: str) -> None:
    shutil.rmtree(lake.storage.full(paths.tracking("W1", "S1", run_id)))
