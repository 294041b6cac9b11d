"""Alerts as a sensor: looks at every source each minute, and sends what is due."""

import os
import time
from collections.abc import Iterator
from datetime import datetime, timedelta

import dagster as dg
import msgspec

from datalake_assets.alert_runs import ended_runs, fate_of
from datalake_assets.reloading import WEBSERVER_VARIABLE
from eventlake.alerts.delivery import Look
from eventlake.lake import Lake
from eventlake.rules.errors import LakeError
from eventlake.runs.context import now
from eventlake.settings.models import Source

_SECONDS = 40  # of the sixty that a sensor has; what is left then is done by the next look
_PATIENCE = timedelta(minutes=15)  # with a source that cannot be looked at
_AT_FIRST = timedelta(hours=1)  # that the first look goes back in Dagster


class _Cursor(msgspec.Struct, frozen=True):
    """How far Dagster's runs are counted, and which source is the next to be looked at."""

    until: datetime
    source: str = ""


def alert(lake: Lake) -> dg.SensorDefinition:
    """Runs by itself where somebody is to be told."""
    wanted = any(source.alerts.has_recipients for source in lake.settings.sources)
    status = dg.DefaultSensorStatus

    @dg.sensor(
        name="alerts",
        minimum_interval_seconds=60,
        default_status=status.RUNNING if wanted else status.STOPPED,
        description="Tells people of failures, of checks that fail, of data that stays away; once.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        told, cursor = look(lake, context.instance, context.cursor, now())
        context.update_cursor(cursor)
        return dg.SkipReason("\n".join(told) or "Nothing to tell.")

    return sensor


def look(
    lake: Lake, instance: dg.DagsterInstance, cursor: str | None, at: datetime
) -> tuple[list[str], str]:
    """Look at all sources, or at as many as there is time for; what to say, and where to go on."""
    sources = [s for s in lake.settings.sources if s.alerts.has_recipients]
    if not sources:
        return ["`alerts` in lake.yaml names no recipients."], cursor or ""
    begun = msgspec.json.decode(cursor, type=_Cursor) if cursor else _Cursor(at - _AT_FIRST)
    end = time.monotonic() + _SECONDS

    def is_time_up() -> bool:
        return time.monotonic() > end

    runs = ended_runs(instance, lake.settings.sources, begun.until)
    one = Look(lake, at, os.environ, ui_url(), lambda id: fate_of(instance, id), is_time_up)
    told: list[str] = []
    heard = True
    left = list(_from(sources, begun.source))
    while left and not is_time_up():
        source = left.pop(0)
        try:
            failures, checks = runs.failures.get(source.id, ()), runs.check_runs.get(source.id, ())
            told += one.at(source, failures, checks)
        except (LakeError, OSError) as error:
            told.append(f"{source.slug} could not be looked at: {error}")
            heard = False
    # What Dagster told is asked for again until every source has heard of it, but not for ever.
    again = (left or not heard) and at - begun.until < _PATIENCE
    following = left[0].slug if left else ""
    cursor = msgspec.json.encode(_Cursor(begun.until if again else runs.until, following)).decode()
    return told, cursor


def ui_url() -> str | None:
    """Where the webserver is, as `datalake dev` has left word of it."""
    server = os.environ.get(WEBSERVER_VARIABLE)
    return f"http://{server}" if server else None


def _from(sources: list[Source], slug: str) -> Iterator[Source]:
    """All of them, a certain one first."""
    first = next((n for n, source in enumerate(sources) if source.slug == slug), 0)
    yield from sources[first:]
    yield from sources[:first]
