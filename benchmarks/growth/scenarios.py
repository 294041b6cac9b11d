"""What grows, from what to what, and what is allowed of it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from benchmarks.recipe import Recipe

_DAY = timedelta(days=1)
_HISTORY_DAYS = 7
_HISTORY_VOLUME = 10  # times the events of the sync that looks back over it
_FEW_COLUMNS = 5  # with which the sample's tables have about 50
_MANY_COLUMNS = 450
_MANY_TABLES = 600
_BIG_GZIP = 100_000_000
_GZIP_BYTES_PER_EVENT = 196  # of the sample, as measured


@dataclass(frozen=True, slots=True)
class Case:
    """One sync that is measured; `before` it, the lake was filled with the history."""

    name: str
    recipe: Recipe
    before: Recipe | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    """Cases that are compared with the first of them."""

    name: str
    says: str
    cases: Sequence[Case]


def scenarios(events: int) -> dict[str, Scenario]:
    """All of them, made of so many events each where nothing else is said."""
    base = Recipe(events=events)
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
            "1 → 24 hours: hardly more",
            [Case("1", replace(base, hours=1)), Case("24", base)],
        ),
        Scenario(
            "columns",
            "10 times the columns, as many values: hardly more",
            [
                Case(name, replace(base, columns=columns, columns_each=_FEW_COLUMNS))
                for name, columns in (("as usual", _FEW_COLUMNS), ("10 times", _MANY_COLUMNS))
            ],
        ),
        Scenario(
            "look-back",
            f"after {_HISTORY_DAYS} days of {_HISTORY_VOLUME} times the events: at most 1.15 times",
            [Case("empty lake", base), Case("7 days before", base, _history(base))],
        ),
        Scenario(
            "nothing",
            "a sync of nothing new: seconds",
            [Case("everything new", base), Case("nothing new", base, base)],
        ),
        Scenario(
            "memory",
            "a lot of one thing: within 4 GB",
            [
                Case("as usual", base),
                Case("one table", replace(base, one_table=True)),
                Case("one hour", replace(base, hours=1, files=1)),
                Case("2,000 tables", replace(base, tables=2_000)),
                Case("10 times the events", replace(base, events=events * 10)),
            ],
        ),
        Scenario("big-gzip", "one gzip of 100 MB: within 4 GB", [Case("100 MB", _big_gzip())]),
    )
    return {scenario.name: scenario for scenario in found}


def _history(base: Recipe) -> Recipe:
    """The week before, of other events."""
    return replace(
        base,
        events=base.events * _HISTORY_VOLUME // _HISTORY_DAYS,
        days=_HISTORY_DAYS,
        first_day=base.first_day - _HISTORY_DAYS * _DAY,
        seed=base.seed + 1,
    )


def _big_gzip() -> Recipe:
    return Recipe(events=_BIG_GZIP // _GZIP_BYTES_PER_EVENT, files=1)
