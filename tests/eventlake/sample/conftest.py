"""One small archive for all tests of the generator."""

import pytest

from eventlake.sample import SampleSpec, write_archive
from tests.support.lakes.jobs import Written

SPEC = SampleSpec(days=3, events_per_day=700)


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    root = tmp_path_factory.mktemp("sample")
    return Written(root, SPEC, write_archive(root, SPEC))
