"""Wherever a run breaks off, one more undisturbed run ends in the lake of an undisturbed one."""

from pathlib import Path

import pytest

from eventlake.storage import local
from tests.support.faults.cases import CASES, CHANGES_OF_TYPES, COMPACTIONS, SYNCS
from tests.support.faults.failing_storage import Fault
from tests.support.faults.faults import Case, hold
from tests.support.faults.places import Folders

pytestmark = pytest.mark.usefixtures("small_files")
LONG = [
    *((case, Fault.UNREADABLE) for case in (*CHANGES_OF_TYPES, *COMPACTIONS)),
    *((CHANGES_OF_TYPES[-1], fault) for fault in Fault),
]
"""They take long: a third of their points by default, all in `make soak`."""


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_call_of_the_store_fails_once(in_memory: Path, case: Case, fault: Fault) -> None:
    every = 3 if (case, fault) in LONG else 1
    assert hold(Folders(in_memory), case, fault, lambda log: range(0, len(log), every)) > 2


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("case", SYNCS, ids=lambda case: case.name)
def test_every_call_fails_once_where_there_is_so_much_that_it_is_done_together(
    in_memory: Path, case: Case, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "MANY", 0)
    assert hold(Folders(in_memory), case, fault) > 2


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("case", (*CHANGES_OF_TYPES, *COMPACTIONS), ids=lambda case: case.name)
def test_every_call_fails_once_of_what_takes_long(
    in_memory: Path, case: Case, fault: Fault
) -> None:
    assert hold(Folders(in_memory), case, fault) > 3
