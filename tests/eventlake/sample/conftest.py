"""One small archive for all tests of the generator."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from eventlake.sample import Account, SampleSpec, write_archive

SPEC = SampleSpec(days=3, events_per_day=700)


@dataclass(frozen=True)
class Written:
    root: Path
    spec: SampleSpec
    account: Account


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    root = tmp_path_factory.mktemp("sample")
    return Written(root, SPEC, write_archive(root, SPEC))
