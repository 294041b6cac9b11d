"""What a look at something comes to."""

from collections.abc import Callable
from dataclasses import dataclass

from eventlake.aws.refusals import as_lake_error
from eventlake.rules.errors import LakeError, UsageError


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at: in order, worth a warning, or what a run would trip over."""

    what: str
    seen: str = ""
    error: LakeError | None = None
    warning: bool = False

    @property
    def level(self) -> str:
        return "error" if self.error else "warning" if self.warning else "ok"

    @property
    def sign(self) -> str:
        return {"error": "✗", "warning": "!", "ok": "✓"}[self.level]

    @property
    def told(self) -> str:
        """What was seen; of what is wrong, with the remedy."""
        return str(self.error or self.seen)


class Remark(Exception):
    """What was looked at is no error, but somebody should know of it."""


def looked(what: str, look: Callable[[], str]) -> Finding:
    """The finding of a look, which tells what it saw, or raises what is wrong."""
    try:
        return Finding(what, look())
    except Remark as remark:
        return Finding(what, str(remark), warning=True)
    except OSError as error:
        told = f"{error}. Give this user the right to read it, or correct the settings."
        return Finding(what, error=as_lake_error(error) or UsageError(told))
    except Exception as error:
        known = as_lake_error(error)
        if known is None:
            raise
        return Finding(what, error=known)
