"""Rejected rows and rescued cells: told when a sync has more than a share of them."""

from datetime import datetime

from lake.alerts.attempt import Attempt, BadRecord
from lake.alerts.state import Trouble
from lake.alerts.streaks import ended


def rejected_after(trouble: Trouble, attempt: Attempt, limit: float | None) -> Trouble:
    if limit is None:
        return Trouble()
    if attempt.replay or not attempt.rows_in:
        return trouble
    numbers = {"rejected": attempt.rejected, "rows_in": attempt.rows_in, "limit": limit}
    share = attempt.rejected_percent
    return _after(trouble, attempt, share, limit, numbers, attempt.first_rejected)


def rescued_after(trouble: Trouble, attempt: Attempt, limit: float | None) -> Trouble:
    if limit is None:
        return Trouble()
    if attempt.replay or not attempt.rows:
        return trouble
    numbers = {"rescued_cells": attempt.rescued_cells, "rows": attempt.rows, "limit": limit}
    share = attempt.rescued_percent
    return _after(trouble, attempt, share, limit, numbers, attempt.first_rescued)


def _after(
    trouble: Trouble,
    attempt: Attempt,
    share: float,
    limit: float,
    numbers: dict[str, float],
    record: BadRecord | None,
) -> Trouble:
    """Over only at half the limit: around the limit itself it would come and go with every sync."""
    if share > limit / 2 and (share > limit or trouble.since):
        since: datetime | None = trouble.since or attempt.started
    else:
        since = None
    if since is None and trouble.since is None:
        return trouble
    found = trouble.record if record is None else _shown(record)
    percent = {"percent": round(share, 2)}
    return Trouble(since, trouble.told, ended(attempt), {**percent, **numbers}, found)


def _shown(record: BadRecord) -> dict[str, str]:
    return {
        "place": record.place,
        "reason": record.reason,
        "identifier": record.identifier,
        "content": record.content,
    }
