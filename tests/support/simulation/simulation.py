"""Days of a lake, simulated: its story, its archive and its disk."""

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from eventlake.lake import Lake
from eventlake.rules import paths
from eventlake.rules.suppression import IdKind
from eventlake.runs.unit import Window
from eventlake.sample import (
    IOS_PROD,
    WEB_SHOP,
    ArchiveFile,
    Expected,
    Load,
    SampleSource,
    SampleSpec,
    history,
    write_archive,
)
from eventlake.settings.models import Settings, Source
from eventlake.state.suppression import WHOLE_LAKE, change
from tests.support.lakes.archive import Archive, page
from tests.support.lakes.settings import settings_of
from tests.support.simulation.clock import Clock, backdate
from tests.support.simulation.machine import Machine

FIRST_DAY = date(2026, 10, 1)
BEGIN = datetime(2026, 10, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Stretch:
    """Some hours from a moment on."""

    day: float
    hours: float

    def has(self, moment: datetime) -> bool:
        return self.begin <= moment < self.end

    @property
    def begin(self) -> datetime:
        return at(self.day)

    @property
    def end(self) -> datetime:
        return self.begin + timedelta(hours=self.hours)


@dataclass(frozen=True)
class Story:
    """In days since the beginning, and hours."""

    days: int
    silence: Stretch  # no raw file arrives; all of them come at its end
    outage: Stretch  # the machine is off; raw files arrive
    failing_from: float
    failures: int  # in a row
    suppressed_from: float
    replayed_on: float  # all days before the suppression, so that nothing of the person is left
    set_back: Stretch  # the clock is behind
    late_days: int = 2  # that some raw files take, of every day


SIXTY_DAYS = Story(
    days=60,
    silence=Stretch(9, 36),
    outage=Stretch(14, 96),
    failing_from=23,
    failures=25,
    suppressed_from=30.3,
    replayed_on=33.2,
    set_back=Stretch(40.1, 30),
)
FIVE_DAYS = Story(
    days=5,
    silence=Stretch(0.6, 28),
    outage=Stretch(2, 30),
    failing_from=3.5,
    failures=6,
    suppressed_from=3.3,
    replayed_on=4.2,
    set_back=Stretch(4.5, 6),
    late_days=1,
)

_NEVER = Stretch(99, 1)
A_DAY = Story(
    days=1,
    silence=_NEVER,
    outage=_NEVER,
    failing_from=0.5,
    failures=1,
    suppressed_from=0,
    replayed_on=99,
    set_back=_NEVER,
    late_days=0,
)


def at(day: float) -> datetime:
    return BEGIN + timedelta(days=day)


GOES = "u-goes"
"""A person whom the generator does not know: two pages a day, until suppressed."""
VISITS = ("09:15", "20:40")


@dataclass
class Arrivals:
    """The archive of one source, of which the lake sees what has arrived."""

    root: Path
    sample: SampleSource
    spec: SampleSpec
    story: Story
    arrived: list[ArchiveFile] = field(default_factory=list)  # and not loaded yet
    loads: list[Load] = field(default_factory=list)  # those that the lake has, in order
    _coming: list[tuple[datetime, str, ArchiveFile | None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._waiting = self.root.with_name(f"{self.root.name}-{self.sample.slug}")
        generated = write_archive(self._waiting, self.spec, sources=[self.sample])
        for file in generated.files[self.sample.id]:
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

    def _arrival(self, file: ArchiveFile) -> datetime:
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
        """A sync has taken all that had arrived."""
        self.loads += [self.arrived] if self.arrived else []
        self.arrived = []

    @property
    def all_came(self) -> bool:
        return not self._coming and not self.arrived


# The first that fits; all below the lake's root, of all sources.
_AREAS = {
    "archive": ("segment-logs/",),
    "data": ("segment-data/data/",),
    "reports": ("segment-data/reports/",),
    "record log": ("sync_tracking_datasets/",),
    "staging": ("segment-stage/", "logs/"),
    "catalog": ("segment-data/_state/catalog/",),
    "ledger": ("/ledger/",),
    "id index": ("/ids/",),
    "manifests": ("/manifests/",),
    "upkeep reports": ("/upkeep/reports/",),
    "other state": ("segment-data/_state/",),
}


@dataclass(frozen=True)
class Usage:
    """Files, bytes and folders by area, and data files of the fullest partition."""

    files: Counter[str]
    bytes: Counter[str]
    folders: Counter[str]
    unneeded: int  # data files that no partition leads to
    fullest: int
    scattered: int  # partitions of past days with more files than compaction leaves


def measure(lake: Lake, root: Path, before: str) -> Usage:
    """Hidden files count, too; `before` is the first day that compaction leaves alone."""
    files, sizes, folders = Counter[str](), Counter[str](), Counter[str]()
    for at, _, names in os.walk(root):
        relative = at[len(f"{root}") + 1 :] + "/"
        area = next((a for a, marks in _AREAS.items() if any(m in relative for m in marks)), None)
        if area is None:
            continue
        folders[area] += 1
        files[area] += len(names)
        sizes[area] += sum(os.stat(f"{at}/{name}").st_size for name in names)
    partitions = [
        (partition.values[0], partition.files)
        for source in lake.settings.sources
        for table in lake.catalog.tables(source.database)
        for partition in lake.catalog.partitions(source.database, table.name)
        if partition.files
    ]
    return Usage(
        files,
        sizes,
        folders,
        unneeded=files["data"] - sum(files for _, files in partitions),
        fullest=max((files for _, files in partitions), default=0),
        scattered=sum(day < before and files > 2 for day, files in partitions),
    )


HOUR = timedelta(hours=1)
SET_BACK = timedelta(minutes=90)
WEB, IOS = WEB_SHOP.slug, IOS_PROD.slug
BERLIN = ZoneInfo("Europe/Berlin")


@dataclass
class Simulation:
    """A lake, its sources, and the machine that runs it."""

    root: Path
    story: Story
    monkeypatch: pytest.MonkeyPatch
    make: Callable[[Lake, Clock], Machine] = Machine
    retention: dict[str, int] = field(default_factory=dict)
    usage: dict[int, Usage] = field(default_factory=dict)  # by day, at its end
    suppressed: bool = False
    replayed: bool = False

    def __post_init__(self) -> None:
        self.clock = Clock(BEGIN)
        self.clock.take_over(self.monkeypatch)
        self.lake = Lake.open(self._settings())
        self.machine = self.make(self.lake, self.clock)
        spec = SampleSpec(
            first_day=FIRST_DAY, days=self.story.days, events_per_day=48, files_per_day=12
        )
        few = replace(spec, events_per_day=12, faults=False, duplicates=0.1)
        self.arrivals = {
            WEB: Arrivals(self.root, WEB_SHOP, spec, self.story),
            IOS: Arrivals(self.root, IOS_PROD, few, self.story),
        }

    def _settings(self) -> Settings:
        told = {"webhook": "$DATALAKE_WEBHOOK"}
        web = {
            "id": WEB_SHOP.id,
            "slug": WEB,
            "date_partition": "day",
            "alerts": {**told, "no_data_hours": 24},
        }
        ios = {"id": IOS_PROD.id, "slug": IOS, "schedule_timezone": BERLIN.key, "alerts": told}
        return settings_of(self.root, web, ios, retention=self.retention)

    def source(self, slug: str) -> Source:
        return self.lake.settings.source(slug)

    def run(self) -> None:
        """Day after day to the end, some more for what is late, and a night."""
        for hours in range((self.story.days + self.story.late_days) * 24 + 6):
            self.clock.go_on(BEGIN + hours * HOUR)
            self._hour(self.clock.true)
            if hours % 24 == 23:
                self.usage[hours // 24 + 1] = self._measure()
        self.machine.look()

    def _hour(self, moment: datetime) -> None:
        for arrivals in self.arrivals.values():
            arrivals.deliver(moment)
        if self.story.outage.has(moment):
            return
        if moment.hour == 3:
            backdate(self.root, moment)
        self._what_happens(moment)
        self.machine.work(lambda source: self.arrivals[source.slug].loaded())

    def _what_happens(self, moment: datetime) -> None:
        story, machine = self.story, self.machine
        self.clock.behind = SET_BACK if story.set_back.has(moment) else timedelta()
        failed = [one for one in machine.syncs.get(WEB, ()) if one.report is None]
        breaks = moment >= at(story.failing_from) and len(failed) < story.failures
        machine.broken = {WEB} if breaks else set()
        if moment >= at(story.suppressed_from) and not self.suppressed:
            now = self.clock.now()
            change(
                self.lake.storage,
                lambda entries: entries.with_ids([GOES], IdKind.USER, WHOLE_LAKE, now),
                now,
            )
            self.suppressed = True
        if moment >= at(story.replayed_on) and not self.replayed:
            window = Window(BEGIN, at(int(story.suppressed_from) + 1))
            for source in self.lake.settings.sources:
                list(machine.run(source, window=window))
            self.replayed = True

    def _measure(self) -> Usage:
        return measure(self.lake, self.root, f"{self.clock.true - timedelta(days=3):%Y-%m-%d}")

    def expected(self, slug: str) -> Expected:
        """What the sample expects of all that was loaded, as it was loaded."""
        return sum(history(self.arrivals[slug].loads), Expected())

    def held(self, slug: str) -> Counter[tuple[str, str]]:
        """Rows by table and day, as the catalog says."""
        source, catalog = self.source(slug), self.lake.catalog
        rows = Counter[tuple[str, str]]()
        for table in catalog.tables(source.database):
            for partition in catalog.partitions(source.database, table.name):
                rows[table.name, partition.values[0]] += partition.rows
        return rows
