"""The verdicts added up: by table for the account, by partition where lake and archive differ."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from eventlake.audit.lake_rows import DataFile
from eventlake.audit.rule import RawVerdict, RowVerdict
from eventlake.rules.partitions import DatePartition, hour_of, partition_of

EXAMPLES = 3
"""Ids shown of each kind of difference in a partition."""

MISSING, UNEXPECTED, DOUBLED, UNCHECKED = "missing", "unexpected", "doubled", "unchecked"
_KINDS = {RowVerdict.DOUBLED: DOUBLED, RowVerdict.UNEXPECTED: UNEXPECTED}

Place = tuple[str, str]
"""A table and the path of a partition."""


@dataclass(frozen=True, slots=True)
class Example:
    """Where an id stands that shows a difference: a line of a raw file, a row of a data file."""

    kind: str
    file: int
    number: int


@dataclass
class Findings:
    """What is known so far."""

    layout: DatePartition
    tables: list[str]  # by number
    data_files: Sequence[DataFile]
    gone_hours: frozenset[str]
    fates: Counter[tuple[str, RawVerdict]] = field(default_factory=Counter)
    unchecked: Counter[str] = field(default_factory=Counter)
    differences: dict[Place, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    examples: dict[Place, list[Example]] = field(default_factory=lambda: defaultdict(list))

    def add(
        self, raw: np.ndarray, raw_verdicts: np.ndarray, rows: np.ndarray, row_verdicts: np.ndarray
    ) -> None:
        """Take in the verdicts on a bucket."""
        pairs, counts = np.unique(
            raw["table"].astype(np.int64) * len(RawVerdict) + raw_verdicts, return_counts=True
        )
        for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
            table, verdict = divmod(pair, len(RawVerdict))
            self.fates[self.tables[table], RawVerdict(verdict)] += count
        for event in raw[raw_verdicts == RawVerdict.MISSING]:
            place = self.tables[event["table"]], partition_of(self.layout, int(event["received"]))
            self._differs(place, Example(MISSING, int(event["file"]), int(event["line"])))
        wrong = (row_verdicts == RowVerdict.DOUBLED) | (row_verdicts == RowVerdict.UNEXPECTED)
        for row, verdict in zip(rows[wrong], row_verdicts[wrong].tolist(), strict=True):
            file = self.data_files[row["file"]]
            kind = _KINDS[RowVerdict(verdict)]
            if kind == UNEXPECTED and self._beyond_recall(int(row["received"])):
                self.unchecked[file.table] += 1
                continue
            example = Example(kind, int(row["file"]), int(row["row"]))
            self._differs((file.table, file.partition), example)

    def _beyond_recall(self, received: int) -> bool:
        """Whether the row may come from a file that the archive no longer has."""
        try:
            return bool(self.gone_hours) and hour_of(received) in self.gone_hours
        except OverflowError:  # a time that no calendar has
            return False

    def _differs(self, place: Place, example: Example) -> None:
        count = self.differences[place]
        count[example.kind] += 1
        if count[example.kind] <= EXAMPLES:
            self.examples[place].append(example)
