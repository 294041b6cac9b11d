"""What can go wrong, as one tree; every message says what was seen, what is allowed, what to do.

LakeError                  exit 1, Segment.Internal
├── SettingsError          exit 2, Segment.InvalidSettings: lake.yaml cannot be used
├── UsageError             exit 2, Segment.InvalidSettings: a command was called wrongly
│   ├── UnknownSource      no source has this slug or id
│   └── ConsentNeeded      raw files changed after loading: a replay has to be told to go on
├── InvalidSetting         Segment.InvalidSettings: a run found a setting wrong
├── InsufficientPermissions  Segment.InsufficientPermissions: an action was refused
├── ServiceTrouble         a service did not answer as it should, however often it was asked
├── DiskFull               there is no room to write
├── StateError             what lies in `_state/` cannot be read, or a newer version wrote it
├── ConservationError      rows in and rows accounted for do not balance
├── CheckFailed            a check before publication found something wrong
├── CommitConflict         another run committed the manifest that this one was about to write
└── LeaseHeld              another run holds the lease of the source
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import takewhile
from typing import ClassVar


class LakeError(Exception):
    """Anything the lake refuses to do, with the code that sync reports carry."""

    error_code: ClassVar[str] = "Segment.Internal"
    exit_code: ClassVar[int] = 1


@dataclass(frozen=True, slots=True)
class Problem:
    """One wrong setting: where it stands, what stands there, what may stand there."""

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
    """The command cannot be carried out as it was given."""

    error_code = "Segment.InvalidSettings"
    exit_code = 2


class UnknownSource(UsageError):
    """A source was asked for that the settings do not have."""

    def __init__(self, asked: str, known: Collection[str]) -> None:
        self.asked, self.known = asked, tuple(known)
        listed = ", ".join(self.known) or "none"
        super().__init__(
            f"Source {asked!r} is not in the settings{did_you_mean(asked, self.known)} "
            f"(known: {listed}). Name one of these, or add it under `sources`."
        )


class InvalidSetting(LakeError):
    """A setting that looked right turned out wrong when a run used it."""

    error_code = "Segment.InvalidSettings"


class InsufficientPermissions(LakeError):
    """A service refused an action to whoever we are there."""

    error_code = "Segment.InsufficientPermissions"


class ServiceTrouble(LakeError):
    """A service could not be reached or failed; there is nothing to correct on our side."""


class ConsentNeeded(UsageError):
    """Raw files were changed or removed after loading: a replay needs to be told that it may."""


class DiskFull(LakeError):
    """There is no room to write."""


class StateError(LakeError):
    """The lake's own state is damaged, or of a format this version does not know."""


class ConservationError(LakeError):
    """The rows of a run do not balance, so nothing of it may be published."""


class CheckFailed(LakeError):
    """A check of what was written failed, so nothing of it may be published."""


class CommitConflict(LakeError):
    """The next manifest exists already: plan again on top of it."""


class LeaseHeld(LakeError):
    """Another run is working on the source."""


def did_you_mean(word: str, known: Collection[str]) -> str:
    """A suggestion to append to a message, or nothing where no known word is near."""
    near = get_close_matches(word, known, n=1, cutoff=0.7)
    return f"; did you mean {near[0]!r}?" if near else ""


_RAISED = re.compile(r"(?:[\w.]+\.)(?P<name>\w+): (?P<said>.*)")


def error_in_trace(trace: str) -> LakeError | None:
    """The error of ours that a stack trace ends with: from Spark's workers they come as text."""
    known = {kind.__name__: kind for kind in _kinds(LakeError)}
    told: LakeError | None = None
    lines = trace.splitlines()
    for number, line in enumerate(lines):
        found = _RAISED.match(line)
        if found and (kind := known.get(found["name"])):
            more = takewhile(_goes_on, lines[number + 1 :])
            # Not by calling it: what the constructor takes is not in the text.
            told = kind.__new__(kind, "\n".join([found["said"], *more]))
    return told


def _goes_on(line: str) -> bool:
    """Of a message; then come an empty line and the JVM's own stack trace."""
    return bool(line.strip()) and not line.startswith("\t")


def _kinds(of: type[LakeError]) -> Iterator[type[LakeError]]:
    yield of
    for kind in of.__subclasses__():
        yield from _kinds(kind)
