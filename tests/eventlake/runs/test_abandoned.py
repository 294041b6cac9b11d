"""Files of runs that failed, lost a race or died: noted at once, gone after the grace time."""

from datetime import UTC, datetime, timedelta

import pytest

from eventlake.rules import paths
from eventlake.runs.open_runs import OpenRun
from eventlake.state.lease import Holder, myself
from eventlake.storage.documents import encode
from tests.support.faults.failing_storage import lying, needed
from tests.support.faults.flows import Raises, flow, overtaken
from tests.support.lakes.archive import track
from tests.support.lakes.runs import SOURCE_ID, CleanAfter, Runs


def two_days(runs: Runs) -> None:
    for day in ("2026-10-01", "2026-10-02"):
        runs.archive.day(day).file("a", track("Order", day, f"{day}T07:00"))
    runs.sync()


def noted(runs: Runs) -> list[str]:
    return [file.name for file in runs.storage.files(paths.abandoned(SOURCE_ID))]


def test_what_a_failed_replay_wrote_goes_and_what_it_published_stays(
    runs: Runs, clean_after: CleanAfter
) -> None:
    two_days(runs)

    runs.flow = flow(after_load=Raises(OSError("the network is gone"), at=2))
    with pytest.raises(OSError, match="network"):
        runs.replay("2026-10-01", "2026-10-03")
    assert noted(runs) == ["R2.json"]
    left = lying(runs) - needed(runs)
    assert any("/_v/R2-1/" in path for path in left)
    assert any("/ids/" in path and "R2-1" in path for path in left)
    assert not clean_after(23)
    cleaned = clean_after(25)
    # What the first day replaced, and what the second day wrote in vain.
    assert cleaned.replaced.files and cleaned.abandoned.files
    assert lying(runs) == needed(runs)
    assert runs.ids("track_order") == ["2026-10-01", "2026-10-02"]
    assert any("/_v/R2/" in path for path in lying(runs))
    assert noted(runs) == []
    assert not clean_after(25)


def test_who_lost_a_race_leaves_nothing_in_the_end_and_keeps_what_it_won(
    runs: Runs, clean_after: CleanAfter
) -> None:
    two_days(runs)
    runs.flow = overtaken(runs, runs.sync)
    runs.archive.day("2026-10-02").file("b", track("Order", "late", "2026-10-01T07:00"))
    runs.replay("2026-10-01", "2026-10-02")
    assert noted(runs) == ["R2.json"]
    assert lying(runs) > needed(runs)
    clean_after(25)
    assert lying(runs) == needed(runs)
    assert runs.ids("track_order") == ["2026-10-01", "2026-10-02", "late"]


def test_what_was_published_and_then_replaced_keeps_its_own_grace_time(
    runs: Runs, clean_after: CleanAfter
) -> None:
    """A run that lost a race once, and published after all; a replay replaces it a day later."""
    two_days(runs)
    runs.flow = overtaken(runs, runs.sync)
    runs.archive.day("2026-10-02").file("b", track("Order", "late", "2026-10-01T07:00"))
    runs.replay("2026-10-01", "2026-10-02")
    clean_after(0)
    published = {path for path in needed(runs) if "/_v/R2-1/" in path}
    assert published
    runs.replay("2026-10-01", "2026-10-02")
    path = f"{paths.abandoned(SOURCE_ID)}/R2.json"
    data = runs.storage.read(path) or b""
    runs.storage.write(path, data.replace(b'"since":"2', b'"since":"1'))  # long ago
    assert clean_after(0).abandoned
    assert published <= lying(runs)
    assert clean_after(25).replaced
    assert lying(runs) == needed(runs)


def test_index_files_of_another_run_at_work_are_kept(runs: Runs, clean_after: CleanAfter) -> None:
    two_days(runs)
    runs.flow = flow(after_load=Raises(OSError("the network is gone")))
    with pytest.raises(OSError, match="network"):
        runs.replay("2026-10-01", "2026-10-02")

    def clean_up(_: object) -> None:
        assert clean_after(25).abandoned.files

    runs.flow = flow(before_load=clean_up)
    runs.archive.day("2026-10-03").file("a", track("Order", "new", "2026-10-03T07:00"))
    runs.sync()
    assert [*runs.index()] == ["2026-10-01", "2026-10-02", "2026-10-03"]
    assert needed(runs) <= lying(runs)


@pytest.mark.parametrize("alive", [True, False])
def test_a_run_that_is_not_over_is_not_cleaned_up_after(
    runs: Runs, clean_after: CleanAfter, alive: bool
) -> None:
    two_days(runs)
    runs.flow = flow(after_load=Raises(OSError("the network is gone")))
    with pytest.raises(OSError, match="network"):
        runs.replay("2026-10-01", "2026-10-02")
    dead = Holder("another-machine", 1, datetime.now(UTC) - timedelta(minutes=5))
    again = OpenRun(runs.context().facts, 0, myself() if alive else dead)
    runs.storage.write(paths.open_run(SOURCE_ID, "R2"), encode(again))
    before = lying(runs)
    assert not clean_after(25)
    assert lying(runs) == before > needed(runs)


def test_while_somebody_commits_nothing_is_judged(runs: Runs, clean_after: CleanAfter) -> None:
    two_days(runs)
    runs.flow = flow(after_load=Raises(OSError("the network is gone")))
    with pytest.raises(OSError, match="network"):
        runs.replay("2026-10-01", "2026-10-02")
    before = lying(runs)
    runs.storage.write(paths.manifest(SOURCE_ID, runs.state().manifest + 1), b"just committed")
    assert not clean_after(25).abandoned
    assert lying(runs) == before
