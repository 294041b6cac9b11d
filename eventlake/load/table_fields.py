"""The fields of a table: the column of each, which fields share one, and the limit."""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np

from eventlake.columnar.batches import ALONE, NO_COLUMN
from eventlake.load.stage_job import StageJob
from eventlake.load.staged import PAYLOAD, Field, encoded_fields
from eventlake.rules.events import Path
from eventlake.rules.names import column_name, is_spelled_like_column, pointer, type_of_table


@dataclass(frozen=True, slots=True)
class BatchFields:
    """The fields of a batch by number; `write_batches` describes the arrays."""

    head: bytes
    fields: list[Field]
    rival: np.ndarray
    spelled: np.ndarray


class TableFields:
    """Keeps the fields of one table across blocks."""

    def __init__(self, job: StageJob, table: str) -> None:
        self._naming, self._limits = job.naming, job.limits
        self._event_type = type_of_table(table, job.naming)
        self._partition_keys = job.date_partition.keys
        self._columns: dict[Path, str | None] = {}
        self._have = set(job.known_columns(table))  # columns that the table has in the lake
        self._batches: dict[bytes, BatchFields] = {}

    def take(self, paths: Collection[Path]) -> bool:
        """Assign columns to the fields; False if the table would have too many."""
        columns = {path: self._column(path) for path in paths if path not in self._columns}
        new = set(columns.values()) - {None} - self._have
        if new and len(self._have) + len(new) > self._limits.columns:
            return False
        self._columns |= columns
        self._have.update(column for column in new if column is not None)
        return True

    def batch(self, numbers: bytes, paths: Iterable[Path]) -> BatchFields:
        """The fields with these numbers, all known to `take`; the empty path is the payload."""
        found = self._batches.get(numbers)
        if found is None:
            found = self._batches[numbers] = self._batch(list(paths))
        return found

    def forget_numbers(self) -> None:
        """Call it when the numbers of fields are reassigned."""
        self._batches.clear()

    def _batch(self, paths: list[Path]) -> BatchFields:
        columns = [self._columns[path] if path else PAYLOAD[1] for path in paths]
        several = [c for c, fields in Counter(columns).items() if fields > 1 and c is not None]
        number: dict[str | None, int] = {c: at for at, c in enumerate(several, 1)}
        number[None] = NO_COLUMN
        fields = [
            (pointer(path), column or "") if path else PAYLOAD
            for path, column in zip(paths, columns, strict=True)
        ]
        return BatchFields(
            encoded_fields(fields),
            fields,
            np.array([number.get(column, ALONE) for column in columns], np.int32),
            np.array([is_spelled_like_column(path, self._naming) for path in paths], np.bool_),
        )

    def _column(self, path: Path) -> str | None:
        length = self._limits.column_name
        return column_name(path, self._naming, self._event_type, self._partition_keys, length)
