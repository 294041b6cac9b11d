"""Which index files tell a unit what the lake has within the dedup window."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

from eventlake.state.id_index import write_index
from eventlake.state.manifest import IndexFile
from eventlake.work.lake_ids import read_ids
from eventlake.work.unit_work import UnitWork


@dataclass(frozen=True, slots=True)
class IndexWindow:
    """Index files to compare with; those made here; days whose old files are no longer valid."""

    files: tuple[IndexFile, ...]
    made: tuple[IndexFile, ...] = ()
    replaced: tuple[str, ...] = ()


def index_window(work: UnitWork, days: Sequence[str]) -> IndexWindow:
    """The index of the days around the rows, without the rows that a replay is to replace."""
    window = work.unit.window
    replayed = [window.days[0]] if window else []
    around = _around([*days, *replayed], work.context.source.dedup_days)
    storage = work.context.storage
    indexed = [file.path for day in around for file in work.state.index.get(day, ())]
    there = dict(zip(indexed, storage.each(storage.exists, indexed), strict=True))
    files: list[IndexFile] = []
    made: list[IndexFile] = []
    replaced: list[str] = []
    for day in around:
        known = work.state.index.get(day, ())
        if day in replayed or _is_unknown(work, day) or not all(there[f.path] for f in known):
            anew = list(_made_from_lake(work, day))
            made += anew
            replaced.append(day)
            known = tuple(anew)
        files += known
    return IndexWindow(tuple(files), tuple(made), tuple(replaced))


def _is_unknown(work: UnitWork, day: str) -> bool:
    """Whether the index has let go of a day, so that only the tables know its events."""
    return day < (work.state.index_from or "") and day not in work.state.index


def _around(days: Sequence[str], reach: int) -> list[str]:
    """The days at most so far from one of these; the calendar ends at both sides."""
    found = {
        date.fromordinal(ordinal)
        for day in map(date.fromisoformat, days)
        for ordinal in range(day.toordinal() - reach, day.toordinal() + reach + 1)
        if date.min.toordinal() <= ordinal <= date.max.toordinal()
    }
    return sorted(map(str, found))


def _made_from_lake(work: UnitWork, day: str) -> Iterable[IndexFile]:
    """The ids of a day from the tables' own columns, but for partitions the unit replaces."""
    source, storage, unit = work.context.source, work.context.storage, work.unit
    places: list[str] = []
    for table, partitions in work.partitions(work.tables, (day, day)).items():
        for partition in partitions:
            start = source.date_partition.parse(partition.values)
            chosen = unit.tables is None or table in unit.tables
            if not (unit.window and chosen and unit.window.holds(start)):
                places.append(partition.location)
    held = storage.each(lambda place: storage.files(place, recursive=False), places)
    ids = read_ids(storage, source, [file for files in held for file in files])
    if len(ids):
        name, folder = f"{work.name}-remade", work.index_folder
        yield from write_index(storage, source.id, name, ids, folder=folder)
