"""One look at a source: what has happened is counted, what is to be told is sent."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from eventlake.alerts.attempt import Attempt, CheckRun
from eventlake.alerts.channels.opening import channels
from eventlake.alerts.delivery import Sending, addressed, claimed
from eventlake.alerts.fate import Fates, unknown
from eventlake.alerts.history import attempts_since, under_way
from eventlake.alerts.rule import Happened, state_after
from eventlake.alerts.state import AlertState, read_alerts, update_alerts
from eventlake.alerts.wording import Words
from eventlake.lake import Lake
from eventlake.settings.models.models import Source


def never() -> bool:
    return False


@dataclass
class Look:
    """What all sources of one look share; `ui` is where people see Dagster's pages."""

    lake: Lake
    now: datetime
    environ: Mapping[str, str]
    ui: str | None = None
    fates: Fates = unknown
    is_time_up: Callable[[], bool] = never
    refused: set[str] = field(default_factory=set)

    def at(
        self,
        source: Source,
        failures: Sequence[Attempt] = (),
        check_runs: Sequence[CheckRun] = (),
    ) -> list[str]:
        """Look at one source; `failures` are those that Dagster knows of. What was sent, or not."""
        if not source.alerts.has_recipients:
            return []
        lake, me = self.lake.for_source(source), uuid.uuid4().hex
        ways = channels(source, self.environ)
        words = Words(source, self.now, source.alerts.ui_url or self.ui)
        # Before the reports: a run that ends meanwhile is then in one of both.
        running = under_way(lake, source)
        before = read_alerts(lake.storage, source.id)
        reported = attempts_since(lake, source, before, self.fates, self.now)
        known = {one.id for one in reported}
        unreported = [one for one in failures if one.id not in known]
        happened = Happened([*reported, *unreported], check_runs, running)

        def change(state: AlertState) -> AlertState:
            counted = state_after(state, happened, source.alerts, words)
            return claimed(addressed(counted, ways, self.now), me, self.now)

        state = update_alerts(lake.storage, source.id, change)
        sending = Sending(lake.storage, source.id, me, self.now, self.is_time_up, self.refused)
        return [f"{source.slug}, by {told}" for told in sending.send(state, ways)]
