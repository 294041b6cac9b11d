"""Time that passes as the simulation says: on the machine's clock, and on the files it writes."""

import os
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from eventlake.rules import clock

_A_LITTLE = timedelta(milliseconds=1)


@dataclass
class Clock:
    """What time it is, and what the machine takes it for."""

    true: datetime
    behind: timedelta = timedelta()
    _looks: int = 0

    def now(self) -> datetime:
        """A little later each time, as it is in earnest."""
        self._looks += 1
        return self.true - self.behind + self._looks * _A_LITTLE

    def go_on(self, to: datetime) -> None:
        self.true, self._looks = to, 0

    def take_over(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """From here on this is the time for everything."""
        monkeypatch.setattr(clock, "read", self.now)


def backdate(root: Path, now: datetime) -> None:
    """Give what was written since the last time the time at which the simulation wrote it."""
    mark, stamp = root.with_name(f"{root.name}-dated"), now.timestamp()
    last = mark.stat().st_mtime if mark.exists() else 0.0
    for folder, _, files in os.walk(root, topdown=False):
        if folder.startswith(f"{root}/segment-logs"):
            continue  # an archive is others' work
        for name in (*files, "."):
            path = os.path.join(folder, name)
            # What was dated by an earlier call may lie before or after the machine's own time.
            if os.stat(path).st_ctime >= last:
                os.utime(path, (stamp, stamp))
    mark.touch()
