"""A lake with a history, in a folder with its own catalog, and on S3 with Glue."""

from pathlib import Path

import pytest

from tests.support.catalogs.by_hand import Checked, HandOnFiles, HandOnGlue, with_history
from tests.support.lakes.glue_runs import GlueRuns
from tests.support.lakes.runs import Runs
from tests.support.servers.aws import AwsServer
from tests.support.servers.glue import strict_glue


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
