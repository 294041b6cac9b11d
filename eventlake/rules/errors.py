"""The errors of the lake. A message says what was found, what is allowed, and what to do.

LakeError                  exit 1, Segment.Internal
├── SettingsError          exit 2, Segment.InvalidSettings: lake.yaml cannot be used
├── UsageError             exit 2, Segment.InvalidSettings: a command was called wrongly
│   ├── UnknownSource      no source has this slug or id
│   └── ConsentNeeded      raw files changed after loading: a replay needs consent
├── InvalidSetting         Segment.InvalidSettings: a run found a setting wrong
├── InsufficientPermissions  Segment.InsufficientPermissions: an action was refused
├── ServiceTrouble         a service failed, also after retries
├── DiskFull               the disk is full
├── StateError             `_state/` is damaged or has a newer format
│   └── DamagedFile        a file cannot be read: it was cut, or edited
├── ConservationError      input rows and accounted rows do not balance
├── CheckFailed            a check before publication found something wrong
└── CommitConflict         another run committed the same manifest number first
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import takewhile
from typing import ClassVar


class LakeError(Exception):
    """Base class, with the error code for sync reports."""

    error_code: ClassVar[str] = "Segment.Internal"
    exit_code: ClassVar[int] = 1


@dataclass(frozen=True, slots=True)
class Problem:
    """One wrong setting: its location, the value found, the values allowed."""

    place: str
    seen: str
    allowed: str

    def __str__(self) -> str:
        return f"{self.place}: {self.seen}; {self.allowed}"


class SettingsError(LakeError):
    """The settings file cannot be used; lists every problem at once."""

    error_code = "Segment.InvalidSettings"
    exit_code = 2

    def __init__(self, summary: str, problems: Sequence[Problem] = ()) -> None:
        self.summary = summary
        self.problems = tuple(problems)
        super().__init__("\n".join([summary, *(f"  {problem}" for problem in self.problems)]))


class UsageError(LakeError):
    """The command was called with wrong arguments."""

    error_code = "Segment.InvalidSettings"
    exit_code = 2


class UnknownSource(UsageError):
    """A source that is not in the settings."""

    def __init__(self, asked: str, known: Collection[str]) -> None:
        self.asked, self.known = asked, tuple(known)
        listed = ", ".join(self.known) or "none"
        super().__init__(
            f"Source {asked!r} is not in the settings{did_you_mean(asked, self.known)} "
            f"(known: {listed}). Name one of these, or add it under `sources`."
        )


class InvalidSetting(LakeError):
    """A setting that passed validation but failed in use."""

    error_code = "Segment.InvalidSettings"


class InsufficientPermissions(LakeError):
    """A service denied an action."""

    error_code = "Segment.InsufficientPermissions"


class ServiceTrouble(LakeError):
    """A service could not be reached or failed; there is nothing to correct."""


class ConsentNeeded(UsageError):
    """Raw files were changed or removed after loading; a replay needs explicit consent."""


class DiskFull(LakeError):
    """The disk is full."""


class StateError(LakeError):
    """The state of the lake is damaged or has an unknown format."""


class DamagedFile(StateError):
    """A file of the lake cannot be read."""


class ConservationError(LakeError):
    """The rows of a run do not balance; nothing is published."""


class CheckFailed(LakeError):
    """A check of written files failed; nothing is published."""


class CommitConflict(LakeError):
    """The next manifest exists already: plan again on top of it."""


_WORD = re.compile(r"[^\W_]+")


def did_you_mean(word: str, known: Collection[str]) -> str:
    """A suggestion to append to a message; empty if no known name is similar, or contains all the
    words: `order completed` is meant for `track_order_completed`."""
    near = get_close_matches(word, known, n=1, cutoff=0.7)
    if not near and (words := set(_WORD.findall(word.lower()))):
        near = sorted((k for k in known if words <= set(_WORD.findall(k.lower()))), key=len)
    return f"; did you mean {near[0]!r}?" if near else ""


_RAISED = re.compile(r"(?:[\w.]+\.)(?P<name>\w+): (?P<said>.*)")


def error_in_trace(trace: str) -> LakeError | None:
    """The lake error at the end of a stack trace; Spark workers send errors as text."""
    known = {kind.__name__: kind for kind in _kinds(LakeError)}
    error: LakeError | None = None
    lines = trace.splitlines()
    for number, line in enumerate(lines):
        found = _RAISED.match(line)
        if found and (kind := known.get(found["name"])):
            more = takewhile(_is_message_line, lines[number + 1 :])
            # Bypasses the constructor, whose arguments are not in the text.
            error = kind.__new__(kind, "\n".join([found["said"], *more]))
    return error


def _is_message_line(line: str) -> bool:
    """A message ends at an empty line or the stack trace of the JVM."""
    return bool(line.strip()) and not line.startswith("\t")


def _kinds(of: type[LakeError]) -> Iterator[type[LakeError]]:
    yield of
    for kind in of.__subclasses__():
        yield from _kinds(kind)
