"""The result of one preflight check."""

from collections.abc import Callable
from dataclasses import dataclass

from eventlake.clouds import as_lake_error
from eventlake.rules.errors import LakeError, UsageError


@dataclass(frozen=True, slots=True)
class Finding:
    """What was checked, and the result: in order, a warning, or an error."""

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
    def message(self) -> str:
        """The result; for an error, the message with the fix."""
        return str(self.error or self.seen)


class Remark(Exception):
    """A warning."""


def finding_of(what: str, check: Callable[[], str]) -> Finding:
    """Run a check, which returns its result or raises an error."""
    try:
        return Finding(what, check())
    except Remark as remark:
        return Finding(what, str(remark), warning=True)
    except OSError as error:
        message = f"{error}. Give this user the right to read it, or correct the settings."
        return Finding(what, error=as_lake_error(error) or UsageError(message))
    except Exception as error:
        known = as_lake_error(error)
        if known is None:
            raise
        return Finding(what, error=known)
