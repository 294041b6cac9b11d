"""Which event types each source sends."""

from functools import cache

from eventlake.sample.app_events import APP_EVENTS
from eventlake.sample.calls import ALIAS, GROUP, IDENTIFY, PAGE, SCREEN
from eventlake.sample.draw import Draw
from eventlake.sample.kinds import Fields, Kind
from eventlake.sample.shared_events import SHARED_EVENTS
from eventlake.sample.shop_events import SHOP_EVENTS
from eventlake.sample.spec import SampleSource

_BY_PLATFORM = {
    "web": (PAGE, IDENTIFY, GROUP, ALIAS, *SHARED_EVENTS, *SHOP_EVENTS),
    "ios": (SCREEN, IDENTIFY, GROUP, ALIAS, *SHARED_EVENTS, *APP_EVENTS),
}


@cache
def kinds_of(source: SampleSource, day: int, extra_events: int = 0) -> tuple[Kind, ...]:
    """What the source sends on a day (from 1), the synthetic event types at the end."""
    known = (kind for kind in _BY_PLATFORM[source.platform] if kind.since <= day)
    return (*known, *(_synthetic(number) for number in range(1, extra_events + 1)))


def _synthetic(number: int) -> Kind:
    def fields(draw: Draw) -> Fields:
        return {
            "label": draw.code("label"),
            "count": draw.below(1_000_000),
            "amount": draw.money(1_000),
            "done": draw.chance(0.5),
            f"only_{number % 7}": {"depth": draw.between(1, 9), "when": "2026-10-01T00:00:00Z"},
        }

    return Kind(f"track_event_{number:04d}", 20, fields, names=(f"Event {number:04d}",))
