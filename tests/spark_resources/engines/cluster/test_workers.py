"""What workers tell of themselves decides what is brought to them, and who is refused."""

import os
import platform
from pathlib import Path

import pytest

from eventlake.rules.errors import InvalidSetting
from eventlake.storage import LocalStorage
from spark_resources.engines.cluster.errors import HERE
from spark_resources.engines.cluster.workers import packages_to_ship, refuse_blind
from spark_resources.shipping.environment import Target, pins
from spark_resources.workers.probe import WorkerLook, look

OURS = pins(Target(platform.machine(), HERE))
LIKE_US = WorkerLook("a", platform.machine(), dict(OURS), True)
BARE = LIKE_US._replace(host="b", versions=dict.fromkeys(OURS))
OLDER = LIKE_US._replace(host="c", versions=OURS | {"pyarrow": "1.0"})
ENGINE = "spark://m:7077"


def test_this_machine_looked_at_by_itself(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    seen.touch()
    [found] = look(["pyarrow", "no-such-package"], str(seen))
    assert found.versions == {"pyarrow": OURS["pyarrow"], "no-such-package": None}
    assert (found.machine, found.sees_file) == (os.uname().machine, True)
    assert [one.sees_file for one in look([], str(tmp_path / "missing"))] == [False]


@pytest.mark.parametrize(
    ("looks", "ship"), [([LIKE_US], False), ([LIKE_US, BARE], True), ([OLDER], True)]
)
def test_packages_are_brought_unless_all_have_the_very_same(
    looks: list[WorkerLook], ship: bool
) -> None:
    target = Target(platform.machine(), HERE) if ship else None
    assert packages_to_ship(looks, ENGINE) == target


def test_they_cannot_be_brought_to_two_kinds_of_processors() -> None:
    other = BARE._replace(machine="other")
    with pytest.raises(InvalidSetting, match="different processors"):
        packages_to_ship([BARE, other], ENGINE)


def test_workers_that_have_another_folder_of_that_name_are_refused(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    refuse_blind([LIKE_US], storage)
    with pytest.raises(InvalidSetting) as caught:
        refuse_blind([LIKE_US, BARE._replace(sees_file=False)], storage)
    told = str(caught.value)
    assert told.startswith("Data lake has invalid configuration for `storage`: worker b of the")
    assert "s3://bucket" in told
