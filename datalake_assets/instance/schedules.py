"""Which schedules were switched off, read without Dagster where its database is SQLite.

They run as lake.yaml says, unless a person has stopped one in the UI.
"""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from datalake_assets.instance.home import (
    VARIABLE,
    ensure_instance_file,
    home_of,
    is_in_sqlite,
)
from eventlake.lake import Lake
from eventlake.settings.models import Source

if TYPE_CHECKING:
    import dagster as dg


@dataclass(frozen=True)
class Schedules:
    """The names of the stopped schedules and sensors of an instance, read only when it matters."""

    stopped: Callable[[], frozenset[str]]

    def is_on(self, source: Source) -> bool:
        return sync_schedule_name(source) not in self._stopped

    @cached_property
    def _stopped(self) -> frozenset[str]:
        return self.stopped()


def sync_job_name(source: Source) -> str:
    return f"sync_{source.name}"


def sync_schedule_name(source: Source) -> str:
    return f"{sync_job_name(source)}_schedule"


def schedules_of(lake: Lake) -> Schedules | None:
    """The schedules of the Dagster instance here, if there is one."""
    home = home_of(lake.settings)
    if not (home / "dagster.yaml").exists():
        return None
    return Schedules(lambda: _stopped_in(home))


def switched_off(lake: Lake) -> set[str]:
    """Sources with a schedule that was switched off in the Dagster instance here."""
    schedules = schedules_of(lake)
    if schedules is None:
        return set()
    try:
        return {s.id for s in lake.settings.sources if s.is_scheduled and not schedules.is_on(s)}
    except Exception:  # without Dagster's database, nothing is known of its schedules
        return set()


def stopped_schedules(instance: "dg.DagsterInstance") -> frozenset[str]:
    """Those that were switched off in the UI."""
    if instance.schedule_storage is None:
        return frozenset()
    states = instance.all_instigator_state()
    return frozenset(state.instigator_name for state in states if not state.is_running)


def _stopped_in(home: Path) -> frozenset[str]:
    """Loading Dagster takes seconds: its SQLite database is read directly, if it is as expected."""
    if is_in_sqlite(home):
        try:
            return _stopped_in_sqlite(home / "schedules" / "schedules.db")
        except (sqlite3.Error, msgspec.MsgspecError):
            pass  # another release of Dagster
    import dagster as dg

    os.environ[VARIABLE] = str(home)
    ensure_instance_file(home)
    with dg.DagsterInstance.from_config(str(home)) as instance:
        return stopped_schedules(instance)


class _Origin(msgspec.Struct):
    job_name: str


class _State(msgspec.Struct):
    origin: _Origin


def _stopped_in_sqlite(file: Path) -> frozenset[str]:
    if not file.exists():
        return frozenset()
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as database:
        rows = database.execute(
            "SELECT instigator_body FROM instigators WHERE status = 'STOPPED'"
        ).fetchall()
    return frozenset(msgspec.json.decode(body, type=_State).origin.job_name for (body,) in rows)
