"""Processes killed by the system in the middle of their work: the next run makes it good.

At some of their changes; deaths at each are played without a process, see `test_faults`.
"""

from pathlib import Path

import pytest

from tests.support.faults.cases import CASES, REPLAYS, SYNCS
from tests.support.faults.failing_storage import Faults
from tests.support.faults.faults import Case, break_off, make_good, snapshot, sweep
from tests.support.faults.killed import killed_step
from tests.support.faults.places import Folders
from tests.support.injected import injected
from tests.support.lakes.runs import Runs

pytestmark = pytest.mark.usefixtures("small_files")


def killed_everywhere(place: Folders, case: Case, after: bool, every: int = 1) -> int:
    """Kill a process at each change that it makes, or at some; how many these were."""
    base = place.new()
    case.before(base)
    undisturbed = Faults()
    whole = break_off(place, place.copy(base, "whole"), case.step, undisturbed)
    make_good(case, whole)
    wanted = snapshot(whole)
    points = list(enumerate(undisturbed.log))[::every]
    for at, change in points:
        root = place.copy(base, str(at)).root
        killed_step(root, case.name, at, after)
        runs = Runs(root, first_run=11)
        make_good(case, runs)
        point = f"killed {'after' if after else 'before'} {change}"
        sweep(runs, point)
        assert snapshot(runs) == wanted, point
        place.forget(runs)
        injected["process killed"] += 1
    return len(points)


def test_a_sync_is_killed_before_some_of_the_changes_it_makes(in_memory: Path) -> None:
    assert killed_everywhere(Folders(in_memory), SYNCS[1], after=False, every=4) >= 6


def test_a_replay_is_killed_after_some_of_the_changes_it_makes(in_memory: Path) -> None:
    assert killed_everywhere(Folders(in_memory), REPLAYS[0], after=True, every=4) >= 6


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_process_is_killed_at_every_change_of_every_step(
    in_memory: Path, case: Case, after: bool
) -> None:
    assert killed_everywhere(Folders(in_memory), case, after) >= 3
