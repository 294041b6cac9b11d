"""A disk without room: whoever wrote to it tells it in its own words."""

import errno

from eventlake.rules.errors import DiskFull

_NUMBERS = (errno.ENOSPC, errno.EDQUOT)
_WORDS = ("No space left on device", "Disk quota exceeded")


def full_disk(error: BaseException) -> DiskFull | None:
    """The error as one of ours; None if something else is wrong.

    Spark tells what happened to its tasks, and Java, as text.
    """
    told = str(error)
    if getattr(error, "errno", None) not in _NUMBERS and not any(w in told for w in _WORDS):
        return None
    line = next(
        (line.strip() for line in told.splitlines() if any(w in line for w in _WORDS)), told
    )
    return DiskFull(
        f"A disk is full: {line}. What was published before stays, nothing of the rest was, and "
        "nothing is lost. Make room where the lake lies and where Spark keeps its temporary files "
        "(SPARK_LOCAL_DIRS, else the system's folder for them), then run it again."
    )
