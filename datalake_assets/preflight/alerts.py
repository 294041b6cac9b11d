"""The ways alerts take: each is tried as far as it goes without sending anything."""

import os
from collections.abc import Iterable, Iterator
from functools import partial

from datalake_assets.preflight.finding import Finding, looked
from eventlake.alerts.channels.base import Channel, NotSent
from eventlake.alerts.delivery import distinct
from eventlake.rules.errors import ServiceTrouble
from eventlake.settings.models import Source


def alert_findings(sources: Iterable[Source]) -> Iterator[Finding]:
    for way, channel, _ in distinct(sources, os.environ):
        yield looked(f"alerts by {way}", partial(_look, channel))


def _look(channel: Channel) -> str:
    try:
        return channel.look()
    except NotSent as error:
        raise ServiceTrouble(f"Alerts would not come through: {error}") from None
