"""Whether Dagster runs the syncs by itself."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

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
