"""Replays that have begun and not finished: what each is, and which of its days are in the lake."""

from collections.abc import Iterable
from datetime import datetime
from typing import Self

import msgspec


class RawVersion(msgspec.Struct, frozen=True, array_like=True):
    """A raw file as a replay read it (or found it removed), and how many rows of the day it had."""

    path: str
    size: int
    stamp: str | None  # None: it was removed
    rows: int = 0
    checksum: str | None = None


class Replay(msgspec.Struct, frozen=True):
    """What a replay is: launched again with all of this the same, it resumes."""

    start: datetime
    end: datetime
    tables: tuple[str, ...] | None  # None: all
    settings: str  # fingerprint of those that matter to the result
    types: str  # fingerprint of the requested types
    suppressed: str = ""  # fingerprint of the suppressed people

    def differences(self, other: "Replay") -> list[str]:
        """The differences between two replays of one range, in words."""
        names = {"suppressed": "suppressed people"}
        fields = ("tables", "settings", "types", "suppressed")
        return [names.get(f, f) for f in fields if getattr(self, f) != getattr(other, f)]


class ReplayStep(msgspec.Struct, frozen=True):
    """The replay that a manifest belongs to: the days it publishes, and from which files.

    Without a day it brings something else (other types, or only the end of the replay).
    """

    replay: Replay
    begun: str  # the id of the run that began it; one that begins anew forgets the days before
    days: dict[str, bool] = {}  # in order, and whether all their hours are in the range
    raw: tuple[RawVersion, ...] = ()


class DoneDay(msgspec.Struct, frozen=True):
    """A day that is in the lake: by which manifest, of which run."""

    manifest: int
    run_id: str


class OpenReplay(msgspec.Struct, frozen=True):
    """A replay that has not finished, and the days it has brought: each compares with those
    before it, so a day is done only as long as they are."""

    replay: Replay
    begun: str
    days: dict[str, DoneDay] = {}

    def with_days(self, days: Iterable[str], done: DoneDay) -> "OpenReplay":
        first, *more = days
        new = {**self._before(first), **dict.fromkeys((first, *more), done)}
        return OpenReplay(self.replay, self.begun, new)

    def overlaid(self, step: ReplayStep) -> "OpenReplay":
        """The same after another replay: a day that it has made anew is no longer as this one
        left it."""
        mine, others = self.replay.tables, step.replay.tables
        common = self.days.keys() & step.days.keys()
        if not common or (mine and others and not {*mine} & {*others}):
            return self
        return OpenReplay(self.replay, self.begun, self._before(min(common)))

    def _before(self, first: str) -> dict[str, DoneDay]:
        return {day: done for day, done in self.days.items() if day < first}


class Replays(msgspec.Struct, frozen=True):
    """The open replays of a source, and by whom each day was last replayed as a whole."""

    open: tuple[OpenReplay, ...] = ()
    days: dict[str, int] = {}  # of all tables and hours: the number of the manifest

    def find(self, replay: Replay) -> OpenReplay | None:
        return next((one for one in self.open if one.replay == replay), None)

    def after(self, step: ReplayStep | None, done: DoneDay, finished: bool) -> Self:
        """The same once a manifest is applied."""
        if step is None:
            return self
        current = self.find(step.replay)
        if current is None or current.begun != step.begun:
            current = OpenReplay(step.replay, step.begun)
        if step.days:
            current = current.with_days(step.days, done)
        others = (one.overlaid(step) for one in self.open if one.replay != step.replay)
        still = [*others, current] if not finished else [*others]
        whole = [day for day, whole in step.days.items() if whole and step.replay.tables is None]
        days = self.days | dict.fromkeys(whole, done.manifest)
        return type(self)(tuple(one for one in still if one.days), days)
