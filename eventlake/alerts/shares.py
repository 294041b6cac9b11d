"""Rejected rows and rescued cells: told when a sync has more than a share of them."""

from datetime import datetime

from eventlake.alerts.attempt import Attempt, BadRecord
from eventlake.alerts.state import Trouble
from eventlake.alerts.streaks import ended


def rejected_after(trouble: Trouble, attempt: Attempt, limit: float | None) -> Trouble:
    counts = {"rejected": attempt.rejected, "rows_in": attempt.rows_in}
    share = attempt.rejected_percent
    return _after(trouble, attempt, share, limit, counts, attempt.first_rejected)


def rescued_after(trouble: Trouble, attempt: Attempt, limit: float | None) -> Trouble:
    counts = {"rescued_cells": attempt.rescued_cells, "rows": attempt.rows}
    share = attempt.rescued_percent
    return _after(trouble, attempt, share, limit, counts, attempt.first_rescued)


def _after(
    trouble: Trouble,
    attempt: Attempt,
    share: float,
    limit: float | None,
    counts: dict[str, int],
    record: BadRecord | None,
) -> Trouble:
    """Over only at half the limit: around the limit itself it would come and go with every sync.

    The counts are some of all: where there are none at all, nothing can be said.
    """
    if limit is None:
        return Trouble()
    _, of_all = counts.values()
    if attempt.replay or not of_all:
        return trouble
    if share > limit / 2 and (share > limit or trouble.since):
        since: datetime | None = trouble.since or attempt.started
    else:
        since = None
    if since is None and trouble.since is None:
        return trouble
    found = trouble.record if record is None else _shown(record)
    numbers = {"percent": round(share, 2), **counts, "limit": limit}
    return Trouble(since, trouble.told, ended(attempt), numbers, found)


def _shown(record: BadRecord) -> dict[str, str]:
    return {
        "place": record.place,
        "reason": record.reason,
        "identifier": record.identifier,
        "content": record.content,
    }
