"""What tasks that log records are told: the lines of files that were not loaded, and why not."""

from dataclasses import dataclass

import numpy as np

from eventlake.rules.names import Naming
from eventlake.rules.partitions import DatePartition
from eventlake.settings.models.models import Limits
from eventlake.staging.job import RawFile
from eventlake.state.suppression import Suppression
from eventlake.storage import Storage

DUPLICATE, OTHER_PAYLOAD = "duplicate", "duplicate with another payload"
"""Why lines were not loaded that could have been; the reasons of rejects are others."""


@dataclass(frozen=True)
class LogJob:
    """What all tasks that log records share."""

    storage: Storage
    folder: str
    operation: str
    naming: Naming
    table_prefix: str | None
    date_partition: DatePartition
    limits: Limits
    dedup_days: int
    suppression: Suppression | None = None


@dataclass(frozen=True)
class NotLoaded:
    """The lines of a file that were not loaded, in order, and why not."""

    file: RawFile
    lines: np.ndarray
    reasons: list[str]
