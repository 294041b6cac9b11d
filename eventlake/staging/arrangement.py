"""How rows go into partitions: found for the rows of all tables at once, since they may be many."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pyarrow as pa

from eventlake.rules.partitions import HOUR_US, DatePartition, partition_of
from eventlake.staging.places import heads, places, split_places
from eventlake.staging.rows_blob import FILE, LINE, RECEIVED
from eventlake.staging.seen import Place


@dataclass(slots=True)
class Arrangement:
    """The rows of a table by partition, and within it in order of arrival."""

    first: Place  # of all rows
    order: np.ndarray | None = None  # None: they are in this order already
    partitions: dict[str, slice] = field(default_factory=dict)


def arranged(
    origins: pa.RecordBatch, lengths: Sequence[int], layout: DatePartition
) -> list[Arrangement]:
    """The arrangements of some tables; `origins` are of all their rows, of which each has some."""
    ends = np.cumsum(lengths)
    starts = ends - np.array(lengths)
    table = np.repeat(np.arange(len(lengths)), lengths)
    where = places(origins[FILE].to_numpy(), origins[LINE].to_numpy())
    names, codes = _partitions(origins[RECEIVED].to_numpy() // HOUR_US, layout)
    files, lines = split_places(np.minimum.reduceat(where, starts))
    found = [Arrangement((*at, 0)) for at in zip(files.tolist(), lines.tolist(), strict=True)]
    for number in _out_of_order(table, codes, where):
        rows = slice(starts[number], ends[number])
        order = found[number].order = np.lexsort((where[rows], codes[rows]))
        codes[rows] = codes[rows][order]
    begin = heads(table, codes)
    at = zip(table[begin].tolist(), codes[begin].tolist(), strict=True)
    for (number, code), (start, end) in zip(at, pairwise([*begin, len(table)]), strict=True):
        rows = slice(int(start - starts[number]), int(end - starts[number]))
        found[number].partitions[names[code]] = rows
    return found


def _partitions(hours: np.ndarray, layout: DatePartition) -> tuple[list[str], np.ndarray]:
    """The names of all partitions in order, and of each row the number of its own."""
    begin = heads(hours)  # few, as rows of an hour come together
    different, of_head = np.unique(hours[begin], return_inverse=True)
    partitions = [partition_of(layout, hour * HOUR_US) for hour in different.tolist()]
    names = sorted(set(partitions))
    codes = np.array([names.index(partition) for partition in partitions])
    return names, np.repeat(codes[of_head], np.diff(begin, append=len(hours)))


def _out_of_order(table: np.ndarray, codes: np.ndarray, where: np.ndarray) -> list[int]:
    """The tables whose rows are not by partition and in order of arrival."""
    later = (codes[1:] > codes[:-1]) | ((codes[1:] == codes[:-1]) & (where[1:] > where[:-1]))
    within = table[1:] == table[:-1]
    numbers: list[int] = np.unique(table[1:][within & ~later]).tolist()
    return numbers
