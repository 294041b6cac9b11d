"""Days and weeks of a lake with two sources, hour by hour, on a clock of their own."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from eventlake.lake import Lake
from eventlake.rules.suppression import IdKind
from eventlake.runs.unit import Window
from eventlake.sample import IOS_PROD, WEB_SHOP, Expected, SampleSpec, history
from eventlake.settings.models import Settings, Source
from eventlake.state.suppression import WHOLE_LAKE, change
from tests.support.lakes.settings import settings_of
from tests.support.simulation.archive import GOES, Arrivals
from tests.support.simulation.clock import Clock, backdate
from tests.support.simulation.disk import Usage, measure
from tests.support.simulation.machine import Machine
from tests.support.simulation.story import BEGIN, FIRST_DAY, Story, at

HOUR = timedelta(hours=1)
SET_BACK = timedelta(minutes=90)
WEB, IOS = WEB_SHOP.slug, IOS_PROD.slug
BERLIN = ZoneInfo("Europe/Berlin")


@dataclass
class Simulation:
    """A lake, those who fill it, and the machine that looks after it."""

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
        few = SampleSpec(
            first_day=FIRST_DAY,
            days=self.story.days,
            events_per_day=12,
            files_per_day=12,
            faults=False,
            duplicates=0.1,
        )
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
        ios = {
            "id": IOS_PROD.id,
            "slug": IOS,
            "schedule_timezone": BERLIN.key,
            "alerts": told,
        }
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
                machine.replay(source, window)
            self.replayed = True

    def _measure(self) -> Usage:
        return measure(self.lake, self.root, f"{self.clock.true - timedelta(days=3):%Y-%m-%d}")

    def expected(self, slug: str) -> Expected:
        """What the generator's account says of all that was loaded, as it was loaded."""
        return sum(history(self.arrivals[slug].loads), Expected())

    def held(self, slug: str) -> Counter[tuple[str, str]]:
        """Rows by table and day, as the catalog says."""
        source, catalog = self.source(slug), self.lake.catalog
        rows = Counter[tuple[str, str]]()
        for table in catalog.tables(source.database):
            for partition in catalog.partitions(source.database, table.name):
                rows[table.name, partition.values[0]] += partition.rows
        return rows
