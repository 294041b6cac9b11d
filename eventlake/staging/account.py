"""The account that a staging task keeps: what became of every row of its files."""

from collections.abc import Iterable, Sequence

import numpy as np

from eventlake.rules.events import Reject
from eventlake.rules.partitions import HOUR_US, hour_of
from eventlake.staging.places import heads, place
from eventlake.staging.seen import SKIPPED, SUPPRESSED, RejectedSample, Seen, SeenFile

SAMPLES = 3  # rejected rows shown of each reason and task

Numbers = Sequence[int] | np.ndarray


class Account:
    """Counts rows as they are taken in or left out; `seen` is what the driver gets of it."""

    def __init__(self, start_us: int | None, ahead_us: int | None) -> None:
        self._start_us = start_us
        self._ahead_us = ahead_us
        self._files: dict[int, SeenFile] = {}
        self.seen = Seen()

    def begin(self, file: int, hours: Iterable[str]) -> SeenFile:
        """The account of one more file, of which rows of some hours are loaded already."""
        self._files[file] = SeenFile(file, hours=set(hours))
        self.seen.files.append(self._files[file])
        return self._files[file]

    def take(self, files: Numbers, received: Numbers) -> None:
        """Rows that were taken in."""
        self.notice(files, received)
        of_file = np.asarray(files)
        first = heads(of_file)
        counts = np.diff(first, append=len(of_file)).tolist()
        for file, count in zip(of_file[first].tolist(), counts, strict=True):
            self._files[file].rows += count

    def skip(self, files: Numbers, lines: Numbers, received: Numbers) -> None:
        """Rows of a table that is not written."""
        self.seen.skipped += len(files)
        self._leave_out(SKIPPED, files, lines, received)

    def suppress(self, table: str, file: int, line: int, received: int) -> None:
        """A row of somebody who is suppressed."""
        self.seen.suppressed[table] = self.seen.suppressed.get(table, 0) + 1
        self._leave_out(SUPPRESSED, [file], [line], [received])

    def reject(self, file: int, line: int, why: Reject, table: str | None) -> None:
        """A row that cannot be loaded."""
        self._files[file].rows += 1
        self._note(why.reason, file, line)
        reasons = self.seen.rejected.setdefault(table or "", {})
        reasons[why.reason] = reasons.get(why.reason, 0) + 1
        if sum(sample.reason == why.reason for sample in self.seen.samples) < SAMPLES:
            sample = RejectedSample(file, line, why.reason, str(why))
            self.seen.samples.append(sample)

    def notice(self, files: Numbers, received: Numbers) -> None:
        """Remember when rows were received."""
        times, of_file = np.asarray(received, np.int64), np.asarray(files)
        hours = times // HOUR_US
        first = heads(of_file, hours)
        for file, hour in zip(of_file[first].tolist(), hours[first].tolist(), strict=True):
            self._files[file].hours.add(hour_of(hour * HOUR_US))
        if self._start_us is not None:
            self.seen.early += int(np.count_nonzero(times < self._start_us))
        if self._ahead_us is not None:
            self.seen.ahead += int(np.count_nonzero(times > self._ahead_us))

    def _leave_out(self, why: str, files: Numbers, lines: Numbers, received: Numbers) -> None:
        """Rows that are as they should be, but not wanted."""
        self.take(files, received)
        for file, line in zip(files, lines, strict=True):
            self._note(why, int(file), int(line))

    def _note(self, reason: str, file: int, line: int) -> None:
        """Remember a row that is not loaded, for the record log."""
        self.seen.not_loaded.setdefault(reason, []).append(place(file, line))
