"""The memory of a task: one setting, from which all limits on what it holds at once follow."""

from dataclasses import dataclass
from typing import Self

from eventlake.settings.models import TASK_MEMORY_MB

_PROGRAM = 256 << 20  # Python with its packages and compiled code
_LONGEST_BLOCK = 1 << 30  # positions in a block have 32 bits
_MOST_TYPED = 1 << 29  # so do those in a column of texts, `rescued_data` among them


@dataclass(frozen=True, slots=True)
class TaskMemory:
    """How much a task holds at once. Beyond a limit it writes what it has, or works in parts.

    The limits are parts of the setting, chosen by what the worst input needs: a line of many short
    values takes three times its length as cells, and twice more while they are written.
    """

    block_bytes: int  # raw lines that are parsed together
    block_lines: int  # the same for short lines, each of which needs about 200 bytes more
    cells: int  # values of parsed lines, 13 bytes each
    careful_bytes: int  # events that the careful reader holds
    share_bytes: int  # staged rows of several partitions that are cast and written together
    file_bytes: int  # staged rows of one file
    typed_bytes: int  # typed columns

    @classmethod
    def of(cls, megabytes: int) -> Self:
        """The limits of a task that may use this much."""
        part = ((megabytes << 20) - _PROGRAM) // 20
        return cls(
            block_bytes=min(3 * part, _LONGEST_BLOCK),
            block_lines=part // 128,
            cells=3 * part // 13,
            careful_bytes=part,
            share_bytes=part,
            file_bytes=4 * part,
            typed_bytes=min(2 * part, _MOST_TYPED),
        )


USUAL = TaskMemory.of(TASK_MEMORY_MB)
"""The limits by the default of the setting."""
