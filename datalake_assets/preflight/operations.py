"""Whether Dagster runs the syncs by itself."""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

from datalake_assets.preflight.finding import Finding, looked
from eventlake.alerts.channels.base import Channel, NotSent
from eventlake.alerts.delivery import distinct
from eventlake.rules.errors import ServiceTrouble
from eventlake.settings.models import Source

if TYPE_CHECKING:
    import dagster as dg


@dataclass(frozen=True)
class Schedules:
    """The schedules of an instance of Dagster, which is asked only when it matters."""

    instance: "Callable[[], dg.DagsterInstance]"

    def is_on(self, source: Source) -> bool:
        from datalake_assets.assets.keys import sync_job_name

        running = self._running
        return running is None or f"{sync_job_name(source)}_schedule" in running

    @cached_property
    def _running(self) -> frozenset[str] | None:
        """Those that were switched on, by hand or by how the UI was started; None: not known."""
        instance = self.instance()
        if instance.schedule_storage is None:
            return None
        states = instance.all_instigator_state()
        return frozenset(state.instigator_name for state in states if state.is_running)


def alert_findings(sources: Iterable[Source]) -> Iterator[Finding]:
    for way, channel, _ in distinct(sources, os.environ):
        yield looked(f"alerts by {way}", partial(_look, channel))


def _look(channel: Channel) -> str:
    try:
        return channel.look()
    except NotSent as error:
        raise ServiceTrouble(f"Alerts would not come through: {error}") from None
