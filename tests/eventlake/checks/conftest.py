"""A lake with a history, in a folder with its own catalog, and on S3 with Glue."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from eventlake.checks.published import TableChecks
from eventlake.runs.verify import CheckResult
from tests.support.catalogs.by_hand import Hand, HandOnFiles, HandOnGlue
from tests.support.lakes.archive import identify, track
from tests.support.lakes.glue_runs import GlueRuns
from tests.support.lakes.retyping import lake_of
from tests.support.lakes.runs import Runs
from tests.support.servers.aws import AwsServer
from tests.support.servers.glue import strict_glue

Results = dict[tuple[str, str], CheckResult]
"""By table and check."""


class Checked:
    """A lake, a hand in it, and what the checks say."""

    def __init__(self, runs: Runs, hand: Hand) -> None:
        self.runs, self.hand = runs, hand
        self.waited = 0

    def results(
        self, now: datetime | None = None, meanwhile: Callable[[], object] = lambda: None
    ) -> Results:
        def wait(_: float) -> None:
            self.waited += 1
            meanwhile()

        checks = TableChecks(lake_of(self.runs), self.runs.source, now or datetime.now(UTC), wait)
        return {(r.table.removeprefix("shop."), r.check): r for r in checks.run()}

    def failed(self) -> dict[str, list[str]]:
        """What did not pass of what is an error, as `table.check`, with its first problems."""
        return {
            f"{table}.{check}": list(result.evidence["first_problems"])
            for (table, check), result in self.results().items()
            if not result.passed and check != "schema_change"
        }


@pytest.fixture
def empty(tmp_path: Path) -> Checked:
    """Nothing is loaded yet."""
    runs = Runs(tmp_path)
    return Checked(runs, HandOnFiles(runs))


@pytest.fixture
def empty_on_glue(tmp_path: Path, aws: AwsServer, monkeypatch: pytest.MonkeyPatch) -> Checked:
    strict_glue(aws, monkeypatch)
    runs = GlueRuns(tmp_path, aws)
    return Checked(runs, HandOnGlue(runs, aws))


@pytest.fixture
def checked(empty: Checked) -> Checked:
    return with_history(empty)


def with_history(empty: Checked) -> Checked:
    """Three hours of orders, the second of two files, and one table beside."""
    runs = empty.runs
    runs.archive.day("2026-10-01").file(
        "a",
        track("Order", "m1", "2026-10-01T07:00", n=1, price=1.5),
        track("Order", "m2", "2026-10-01T08:00", n=2),
        identify("m3", "2026-10-01T07:30", email="a@example.org"),
    )
    runs.sync()
    runs.archive.day("2026-10-02").file(
        "b",
        track("Order", "m4", "2026-10-01T08:59", n=3, coupon="x"),
        track("Order", "m5", "2026-10-02T00:10", n=4),
    )
    runs.sync()
    return empty
