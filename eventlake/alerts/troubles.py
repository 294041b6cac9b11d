"""The troubles that a source has now, for who asks."""

from dataclasses import dataclass
from datetime import datetime

from msgspec.structs import replace

from eventlake.alerts.draft import Draft
from eventlake.alerts.state import AlertState
from eventlake.alerts.wording import Words


@dataclass(frozen=True, slots=True)
class OpenTrouble:
    """Something that is wrong; `title` says it as a message would."""

    kind: str
    title: str
    since: datetime


def open_troubles(state: AlertState, words: Words) -> list[OpenTrouble]:
    """By how long they last."""
    found: list[tuple[datetime | None, Draft]] = []
    for work, streak in (("sync", state.syncs), ("replay", state.replays)):
        if streak.failures:
            found.append((streak.since, words.failing(f"{work}_failures", work, streak)))
    if state.silence.since:
        found.append((state.silence.since, words.silent(state.silence)))
    for kind, trouble in (("rejected", state.rejected), ("rescued", state.rescued)):
        if trouble.since:
            found.append((trouble.since, words.share(kind, trouble)))
    for name, check in state.checks.items():
        if check.failing:
            found.append((check.since, words.check(name, replace(check, told=()))))
    troubles = [OpenTrouble(d.kind, d.title, since or words.now) for since, d in found]
    return sorted(troubles, key=lambda trouble: trouble.since)
