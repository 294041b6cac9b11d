"""The days of a replay, one after the other, and what ends it."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import msgspec

from eventlake.rules.counts import UnitReport
from eventlake.rules.errors import CommitConflict
from eventlake.state.manifest import Manifest
from eventlake.work.plan import RawFiles, plan_replay, raw_files
from eventlake.work.raw_changes import RawChange, agreed, raw_changes, refusal, rows_held
from eventlake.work.resume import Progress
from eventlake.work.run_context import Published, now
from eventlake.work.running import Run
from eventlake.work.switch import Switches
from eventlake.work.unit import Window


@dataclass
class Replaying:
    """A replay of some tables (None: all), and whether changed raw files were agreed to."""

    run: Run
    tables: frozenset[str] | None
    accept_changes: bool
    progress: Progress = field(init=False)

    def look(self, window: Window) -> RawFiles:
        """The raw files as they are; refuses a range whose files changed after loading."""
        context = self.run.context
        raw = raw_files(context.storage, context.source)
        if changes := self._require_consent(raw, window):
            context.listener.warn(agreed(changes))
        return raw

    def days(self, days: list[Window], switches: Switches) -> Iterator[Published]:
        """Every day that is not in the lake yet, each published as soon as it is done."""
        left = [day for day in days if day.days[0] not in self.progress.done]
        for day in left:
            with self.run.lease(f"replay of {day}"):
                final = day is left[-1] and not switches.possible(self.run.state)
                published = self._day(day, final, switches.tables)
            if published is not None:
                yield published

    def ending(self, switches: Switches) -> Iterator[Published]:
        """Give tables the types that were wished of them, if all is ready; the replay is over."""
        run = self.run
        for day in switches.left_out(run.catch_up()):
            with run.lease(f"replay of {day}"):
                published = self._publish(day, switches.tables, switches.tables)
            yield published
        with run.lease("end of the replay"):
            ended = self._end(switches)
        yield ended

    def _day(self, day: Window, final: bool, switches: frozenset[str]) -> Published | None:
        done = self.progress.has(self.run.catch_up(), day)
        if done is not None:
            self.run.context.listener.log(f"{day}: run {done.run_id} has just done it")
            return None
        return self._publish(day, self.tables, switches, final, in_range=True)

    def _publish(
        self,
        day: Window,
        tables: frozenset[str] | None,
        switches: frozenset[str],
        final: bool = False,
        in_range: bool = False,
    ) -> Published:
        """Replay one day on top of whatever others commit in the meantime."""
        run, context = self.run, self.run.context
        while True:
            run.catch_up()
            raw = raw_files(context.storage, context.source)
            if not self.accept_changes:
                self._require_consent(raw, day)
            step = self.progress.step(day if in_range else None, raw.gone(day))
            unit = replace(plan_replay(raw, day, tables), switches=switches, step=step)
            try:
                return run.publish(unit, final)
            except CommitConflict as conflict:
                context.listener.warn(str(conflict))

    def _require_consent(self, raw: RawFiles, window: Window) -> list[RawChange]:
        """Raw files that changed after loading: refused, unless agreed to or nothing is lost."""
        context, state = self.run.context, self.run.state
        changes = raw_changes(context.storage, state, raw, window)
        if changes and not self.accept_changes:
            rows = rows_held(context.catalog, context.source, state, window, self.tables)
            if rows:
                raise refusal(window, changes, rows)
        return changes

    def _end(self, switches: Switches) -> Published:
        run = self.run
        while True:
            state = run.catch_up()
            manifest = switches.manifest(state, run.done) or self._closing()
            manifest = msgspec.structs.replace(manifest, replay=self.progress.step())
            try:
                run.commit(manifest)
            except CommitConflict as conflict:
                run.context.listener.warn(str(conflict))
                continue
            for key in manifest.retyped:
                run.context.listener.log(f"{key} has the types that were wished of it now")
            return Published(manifest, UnitReport(), ())

    def _closing(self) -> Manifest:
        """The replay is over, and nothing else: launched again, it runs anew."""
        run, source = self.run, self.run.context.source
        return msgspec.structs.replace(
            run.state.next_manifest(source, run.context.kind, run.context.facts),
            report=run.done,
            finish_time=now(),
        )
