"""The partitions of assets: days in UTC. The lake itself keeps its hours."""

from datetime import date

import dagster as dg

from eventlake.runs.unit import Window

# Before a source's first day is known. It is only the left end of what the UI offers: events are
# recorded by day, so a later start forgets nothing.
FALLBACK_START = date(2024, 1, 1)

REPLAY = dg.BackfillPolicy.single_run()
"""One replay, one run."""


def days(start: date | None) -> dg.DailyPartitionsDefinition:
    """All days of a source, today included."""
    first = start or FALLBACK_START
    return dg.DailyPartitionsDefinition(start_date=f"{first}", timezone="UTC", end_offset=1)


def window_of(keys: dg.PartitionKeyRange, partitions: dg.DailyPartitionsDefinition) -> Window:
    """The range of a run; works for one day, for a range and for direct invocation alike."""
    first = partitions.time_window_for_partition_key(keys.start)
    last = partitions.time_window_for_partition_key(keys.end)
    return Window(first.start, last.end)
