"""The limits of tables and columns, over all tasks of a unit."""

from eventlake.staging.job import StageJob
from eventlake.staging.seen import Seen


def over_limits(job: StageJob, seen: Seen) -> bool:
    """Whether tasks together found more than each of them, by itself, was allowed to find."""
    columns = {table.table: set(job.known_columns(table.table)) for table in seen.tables}
    for table in seen.tables:
        columns[table.table].update(column.column for column in table.columns)
    tables = columns.keys() | job.columns.keys()
    widest = max(map(len, columns.values()), default=0)
    return (
        len(tables) > job.limits.tables
        or (job.room is not None and len(tables) - len(job.columns) > job.room)
        or widest > job.limits.columns
    )
