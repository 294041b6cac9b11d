"""The same on S3: a sample of all calls by default, each of them in `make soak`."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.support.faults.cases import CASES, COMPACTIONS, REPLAYS, SYNCS
from tests.support.faults.failing_storage import Fault
from tests.support.faults.faults import Case, hold
from tests.support.faults.places import Bucket
from tests.support.servers.aws import AwsServer

pytestmark = pytest.mark.usefixtures("small_files")
STEPS_OF_PUBLICATION = (
    "create segment-data/_state/sources/S1/manifests",
    "place segment-data/data",
    "update segment-data/_state/catalog",
    "update segment-data/_state/sources/S1/ledger",
    "update segment-data/_state/sources/S1/state.json",
    "write segment-data/reports",
    "clear segment-stage",
)


def publication(log: list[str]) -> Iterable[int]:
    """One call for each step of a publication."""
    for step in STEPS_OF_PUBLICATION:
        found = [at for at, call in enumerate(log) if call.startswith(step)]
        yield from found[-1:]


@pytest.fixture
def bucket(aws: AwsServer, in_memory: Path) -> Bucket:
    return Bucket(in_memory, aws, aws.bucket())


def test_a_process_dies_at_each_step_of_publication(bucket: Bucket) -> None:
    assert hold(bucket, SYNCS[1], Fault.DEATH, publication) == len(STEPS_OF_PUBLICATION)


def test_the_answer_to_a_commit_is_lost(bucket: Bucket) -> None:
    assert hold(bucket, REPLAYS[0], Fault.LOST_ANSWER, lambda log: [*publication(log)][:1]) == 1


def test_a_compaction_dies_as_it_commits_and_as_it_shows_what_it_did(bucket: Bucket) -> None:
    def chosen(log: list[str]) -> Iterable[int]:
        yield from [*publication(log)][:2]

    assert hold(bucket, COMPACTIONS[0], Fault.DEATH, chosen) == 2


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_call_of_the_store_fails_once(bucket: Bucket, case: Case, fault: Fault) -> None:
    assert hold(bucket, case, fault) > 3
