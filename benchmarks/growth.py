"""How the time and memory of a sync grow with events, tables, hours, columns and history."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from statistics import median

import msgspec

from benchmarks.archive import Archive, Recipe, make_archive
from benchmarks.contest import Run, run
from benchmarks.contestants import (
    COMMAND,
    ENGINE,
    Contestant,
    engine_command,
    lake_folder,
    replaying,
)
from benchmarks.measure import measure

_DAY = timedelta(days=1)
_HISTORY_DAYS = 7
_HISTORY_VOLUME = 10  # times the events of the measured sync
_FEW_COLUMNS = 5  # in addition to the sample's own; about 50 in all
_MANY_COLUMNS = 450
_MANY_TABLES = 600
_FEW_TABLES = 24  # the fewest that the sample has
_BIG_GZIP = 100_000_000
_GZIP_BYTES_PER_EVENT = 196  # measured on the sample


@dataclass(frozen=True, slots=True)
class Case:
    """A measured sync of `recipe`, after the lake was filled with `before`; or a replay of it."""

    name: str
    recipe: Recipe
    before: Recipe | None = None
    by: Contestant = ENGINE
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class Scenario:
    """Cases to compare with the first one."""

    name: str
    goal: str
    cases: Sequence[Case]


def scenarios(events: int) -> dict[str, Scenario]:
    """All scenarios by name; `events` is the size of a case unless the case varies it."""
    base = Recipe(events=events)
    days = Recipe(events=events // 50, tables=_FEW_TABLES, hours=1, files=1, days=60)
    month = replace(days, days=30, first_day=days.first_day - 30 * _DAY)  # before today
    wide = replace(base, events=events // 5, tables=450, hours=1, files=1)
    found = (
        Scenario(
            "events",
            "time is linear in events",
            [
                Case(f"{factor} times", replace(base, events=max(100, int(events * factor))))
                for factor in (0.25, 1, 4)
            ],
        ),
        Scenario(
            "tables",
            f"60 → {_MANY_TABLES} tables: at most 1.3 times",
            [Case("60", base), Case(f"{_MANY_TABLES}", replace(base, tables=_MANY_TABLES))],
        ),
        Scenario(
            "hours",
            "1 → 24 hours: little more",
            [Case("1", replace(base, hours=1)), Case("24", base)],
        ),
        Scenario(
            "columns",
            "10 times the columns, same number of values: little more",
            [
                Case(name, replace(base, columns=columns, columns_each=_FEW_COLUMNS))
                for name, columns in (("usual", _FEW_COLUMNS), ("10 times", _MANY_COLUMNS))
            ],
        ),
        Scenario(
            "look-back",
            f"after {_HISTORY_DAYS} days of {_HISTORY_VOLUME} times the events: at most 1.15 times",
            [Case("empty lake", base), Case("7 days of history", base, _history(base))],
        ),
        Scenario(
            "nothing",
            "a sync without new data: seconds",
            [
                Case("everything new", base),
                Case("nothing new", base, base),
                Case("nothing new, command", base, base, COMMAND),
            ],
        ),
        Scenario(
            "days-by-command",
            f"{days.days} days of {days.tables} tables: at most 1.25 times the engine",
            [Case("engine", days), Case("command", days, by=COMMAND)],
        ),
        Scenario(
            "replay-by-command",
            f"{month.days} days of {month.tables} tables: at most 1.25 times the engine",
            [
                Case("engine", month, month, ENGINE, replayed=True),
                Case("command", month, month, COMMAND, replayed=True),
            ],
        ),
        Scenario(
            "tables-by-command",
            f"{wide.tables} new tables: at most 3 s more than the engine",
            [Case("engine", wide), Case("command", wide, by=COMMAND)],
        ),
        Scenario(
            "memory",
            "extreme archives: at most 4 GB",
            [
                Case("usual", base),
                Case("one table", replace(base, one_table=True)),
                Case("one hour", replace(base, hours=1, files=1)),
                Case("2,000 tables", replace(base, tables=2_000)),
                Case("10 times the events", replace(base, events=events * 10)),
            ],
        ),
        Scenario("big-gzip", "one gzip of 100 MB: at most 4 GB", [Case("100 MB", _big_gzip())]),
    )
    return {scenario.name: scenario for scenario in found}


def _history(base: Recipe) -> Recipe:
    """Other events from the week before."""
    return replace(
        base,
        events=base.events * _HISTORY_VOLUME // _HISTORY_DAYS,
        days=_HISTORY_DAYS,
        first_day=base.first_day - _HISTORY_DAYS * _DAY,
        seed=base.seed + 1,
    )


def _big_gzip() -> Recipe:
    return Recipe(events=_BIG_GZIP // _GZIP_BYTES_PER_EVENT, files=1)


class CaseRuns(msgspec.Struct, frozen=True):
    """The rounds of one case."""

    scenario: str
    case: str
    lines: int
    runs: list[Run]

    @property
    def name(self) -> str:
        return f"{self.scenario}: {self.case}"

    @property
    def time(self) -> float:
        return median(run.measured.wall for run in self.runs)

    @property
    def after_start(self) -> float:
        """Time since the first raw file was read, or the whole time if none was."""
        return median(run.measured.wall - (run.measured.ready or 0) for run in self.runs)

    @property
    def cpu(self) -> float:
        return median(run.measured.cpu for run in self.runs)

    @property
    def memory(self) -> float:
        return max(run.measured.peak_memory for run in self.runs)

    @property
    def is_correct(self) -> bool:
        return not any(run.errors for run in self.runs)


def run_case(case: Case, folder: Path, round: int) -> tuple[Run, int]:
    """Run the case; also return the number of new lines that the measured sync had to load."""
    archives = folder / "archives"
    archive = make_archive(archives, case.recipe)
    if case.before is None:
        return run(archive, case.by, folder / "runs" / "growth", round), archive.truth.lines
    history = make_archive(archives, case.before)
    nothing_new = case.before == case.recipe

    def prepare(lake: Path, new: Archive) -> None:
        lake_folder(lake, history)
        log = lake / "history"
        log.mkdir()
        # `measure` waits until all processes of the command have ended.
        measure(engine_command(history.folder, lake), log)
        new.link_into(lake / "lake")

    truth = history.truth if nothing_new else history.truth.then(archive.truth)
    by = case.by
    if case.replayed:
        first = case.recipe.first_day
        by = replaying(by, f"{first}", f"{first + case.recipe.days * _DAY}")
    contestant = replace(by, prepare=prepare)
    done = run(replace(archive, truth=truth), contestant, folder / "runs" / "growth", round)
    return done, 0 if nothing_new and not case.replayed else archive.truth.lines
