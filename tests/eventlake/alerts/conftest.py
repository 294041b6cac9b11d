"""A lake that somebody looks at, and ways to nowhere."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from eventlake.alerts import delivery as delivery
from eventlake.alerts.channels import Channel
from tests.support.alerts.lakes import BEGIN, FakeChannel, WatchedLake


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[FakeChannel, FakeChannel]]:
    made = (FakeChannel("a"), FakeChannel("b"))
    named: dict[str, Channel] = {"email": made[0], "webhook": made[1]}
    monkeypatch.setattr(delivery, "channels_of", lambda source, environ: named)
    yield made


@pytest.fixture
def watched(tmp_path: Path) -> WatchedLake:
    lake = WatchedLake(tmp_path, email_to="data@example.com")
    lake.run(BEGIN)
    lake.look(BEGIN, {})
    return lake
