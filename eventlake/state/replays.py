"""Unfinished replays: what identifies each, and which of its days are in the lake."""

from collections.abc import Iterable
from datetime import datetime
from typing import Self

import msgspec


class RawVersion(msgspec.Struct, frozen=True, array_like=True):
    """A raw file as a replay read it (or found it removed), and its number of rows of the day."""

    path: str
    size: int
    stamp: str | None  # None: it was removed
    rows: int = 0
    checksum: str | None = None


class Replay(msgspec.Struct, frozen=True):
    """What identifies a replay: launched again with the same values, it resumes."""

    start: datetime
    end: datetime
    tables: tuple[str, ...] | None  # None: all
    settings: str  # fingerprint of those that affect the result
    types: str  # fingerprint of the requested types
    suppressed: str = ""  # fingerprint of the suppressed people

    def differences(self, other: "Replay") -> list[str]:
        """The differences between two replays of one range, in words."""
        names = {"suppressed": "suppressed people"}
        fields = ("tables", "settings", "types", "suppressed")
        return [names.get(f, f) for f in fields if getattr(self, f) != getattr(other, f)]


class ReplayStep(msgspec.Struct, frozen=True):
    """The replay of a manifest: the days that it publishes, and their raw files.

    Without days, it changes types, or only ends the replay.
    """

    replay: Replay
    begun: str  # the run that began it; if it starts over, earlier days do not count
    days: dict[str, bool] = {}  # in order; whether all hours of the day are in the range
    raw: tuple[RawVersion, ...] = ()


class DoneDay(msgspec.Struct, frozen=True):
    """A published day: its manifest and run."""

    manifest: int
    run_id: str


class OpenReplay(msgspec.Struct, frozen=True):
    """An unfinished replay and its published days. Each day was compared with earlier ones, so it
    counts only as long as they do."""

    replay: Replay
    begun: str
    days: dict[str, DoneDay] = {}

    def with_days(self, days: Iterable[str], done: DoneDay) -> "OpenReplay":
        first, *more = days
        new = {**self._before(first), **dict.fromkeys((first, *more), done)}
        return OpenReplay(self.replay, self.begun, new)

    def overlaid(self, step: ReplayStep) -> "OpenReplay":
        """The same after another replay: days that it rewrote no longer count."""
        mine, others = self.replay.tables, step.replay.tables
        common = self.days.keys() & step.days.keys()
        if not common or (mine and others and not {*mine} & {*others}):
            return self
        return OpenReplay(self.replay, self.begun, self._before(min(common)))

    def _before(self, first: str) -> dict[str, DoneDay]:
        return {day: done for day, done in self.days.items() if day < first}


class Replays(msgspec.Struct, frozen=True):
    """The open replays of a source, and the last complete replay of each day."""

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
