"""Settings that may not change over existing tables."""

from eventlake.rules.errors import Problem, SettingsError
from eventlake.settings.models.models import Source
from eventlake.state.source_state import SourceState


def refuse_changed_layout(source: Source, state: SourceState) -> None:
    """Tables keep the layout and naming they were made with; a new place is free to choose."""
    tables = state.tables_of(source).values()
    if not tables:
        return
    made_with = state.layouts[next(iter(tables)).key]
    changed = [
        Problem(
            f"sources[{source.slug}].{name}",
            f"{now!r}, but its tables in database {source.database!r} were made with {then!r}",
            f"set it back to {then!r}, or give the source a new `database` or `table_prefix` "
            "and replay into it",
        )
        for name, then, now in (
            ("date_partition", made_with.date_partition, source.date_partition.value),
            ("naming", made_with.naming, source.naming.value),
        )
        if then != now
    ]
    if changed:
        partitions = any(problem.place.endswith("date_partition") for problem in changed)
        what = "Table partitions configuration" if partitions else "Naming configuration"
        raise SettingsError(f"{what} of source {source.slug!r} is invalid.", changed)
