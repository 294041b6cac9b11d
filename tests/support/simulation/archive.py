"""Raw files that arrive when their time has come, some of them late; and the account of them."""

import os
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from eventlake.rules import paths
from eventlake.sample import Load, RawFile, SampleSource, SampleSpec, write_archive
from tests.support.lakes.archive import Archive, page
from tests.support.simulation.story import FIRST_DAY, Story, at

GOES = "u-goes"
"""Somebody whom the generator does not know: two pages a day, until they want to be left alone."""
VISITS = ("09:15", "20:40")


@dataclass
class Arrivals:
    """The archive of one source, of which the lake sees what has arrived."""

    root: Path
    sample: SampleSource
    spec: SampleSpec
    story: Story
    arrived: list[RawFile] = field(default_factory=list)  # and not loaded yet
    loads: list[Load] = field(default_factory=list)  # those that the lake has, in order
    _coming: list[tuple[datetime, str, RawFile | None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._waiting = self.root.with_name(f"{self.root.name}-{self.sample.slug}")
        account = write_archive(self._waiting, self.spec, sources=[self.sample])
        for file in account.files[self.sample.id]:
            self._coming.append((self._arrival(file), file.path, file))
        archive = Archive(self._waiting / paths.raw_root(self.sample.id))
        for number in range(self.spec.days):
            day = at(number).date()
            visits = [
                page(f"{GOES}-{day}-{time}", f"{day}T{time}:00Z") | {"userId": GOES}
                for time in VISITS
            ]
            path = archive.day(f"{day}").file(GOES, *visits)
            held = f"{path.relative_to(self._waiting)}"
            self._coming.append((self._not_before(at(number + 0.99)), held, None))
        self._coming.sort(key=lambda item: item[:2], reverse=True)

    def _arrival(self, file: RawFile) -> datetime:
        """Soon after the last event in it; stragglers some days later."""
        last = int(file.path.rsplit("/", 1)[-1].split("_")[1])
        moment = datetime.fromtimestamp(last / 1000, UTC) + timedelta(minutes=20)
        if file.arrival > (file.folder - FIRST_DAY).days + 1:
            moment += timedelta(days=self.story.late_days)
        return self._not_before(moment)

    def _not_before(self, moment: datetime) -> datetime:
        return self.story.silence.end if self.story.silence.has(moment) else moment

    def deliver(self, moment: datetime) -> None:
        """Put there what has arrived by now."""
        while self._coming and self._coming[-1][0] <= moment:
            arrival, path, file = self._coming.pop()
            target = self.root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(self._waiting / path, target)
            os.utime(target, (arrival.timestamp(), arrival.timestamp()))
            if file is not None:
                self.arrived.append(file)

    def loaded(self) -> None:
        """A sync has taken all that had arrived, day folder by day folder."""
        folders = sorted({file.folder for file in self.arrived})
        self.loads += [[f for f in self.arrived if f.folder == folder] for folder in folders]
        self.arrived = []

    @property
    def all_came(self) -> bool:
        return not self._coming and not self.arrived
