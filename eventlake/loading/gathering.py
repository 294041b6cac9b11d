"""Columns of several parts as one, in the order in which rows are written."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from eventlake.casting.encoding import ARROW_TYPES, Encoding
from eventlake.loading.staged_part import StagedPart


def gathered(
    parts: Sequence[StagedPart], columns: Mapping[str, Encoding], order: np.ndarray
) -> dict[str, pa.Array]:
    """Those of the columns in which a row has a value; rows are counted over all parts."""
    # Compiled code, which only workers need.
    from eventlake.columnar.compiled import cache_folder
    from eventlake.loading.kernel_gathering import gathered_by_kernel

    # Where it cannot be kept, compiling it takes longer than it spares.
    if cache_folder() is None:
        return gathered_by_arrow(parts, columns, order)
    return gathered_by_kernel(parts, columns, order)


def gathered_by_arrow(
    parts: Sequence[StagedPart], columns: Mapping[str, Encoding], order: np.ndarray
) -> dict[str, pa.Array]:
    found: dict[str, pa.Array] = {}
    for name, encoding in columns.items():
        type = ARROW_TYPES[encoding]
        every = pa.concat_arrays(
            part.batch[name] if name in part.columns.buffers else pa.nulls(len(part), type)
            for part in parts
        )
        taken = every.take(pa.array(order))
        if taken.null_count < len(taken):
            found[name] = taken
    return found
