"""A message to every recipient, to see that it comes through."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from eventlake.alerts.channels.channel import Channel, NotSent
from eventlake.alerts.channels.opening import channels
from eventlake.alerts.message import Message
from eventlake.settings.models.models import Source


@dataclass(frozen=True, slots=True)
class Tried:
    """One way, the first source that asks for it, and what became of the try."""

    way: str
    address: str
    source: str
    error: str = ""
    remark: str = ""


def distinct(
    sources: Iterable[Source], environ: Mapping[str, str]
) -> list[tuple[str, Channel, Source]]:
    """Every way once, whatever the number of sources that share it."""
    found: dict[tuple[str, str], tuple[str, Channel, Source]] = {}
    for source in sources:
        for way, channel in channels(source, environ).items():
            found.setdefault((way, channel.address), (way, channel, source))
    return list(found.values())


def send_tests(
    sources: Iterable[Source], environ: Mapping[str, str], now: datetime
) -> Iterator[Tried]:
    for way, channel, source in distinct(sources, environ):
        try:
            remark = channel.send(_message(source, way, now))
        except NotSent as error:
            yield Tried(way, channel.address, source.slug, error=str(error))
        else:
            yield Tried(way, channel.address, source.slug, remark=remark)


def _message(source: Source, way: str, now: datetime) -> Message:
    title = f"{source.slug}: test of alerts by {way}"
    text = (
        f"{title}\nWhat: somebody has called `datalake alerts --test`; nothing is wrong.\n"
        f"Since: {now:%Y-%m-%d %H:%M} UTC\nWhat to do: nothing."
    )
    return Message(f"{source.id}-test", source.slug, "test", title, text, now, over=True)
