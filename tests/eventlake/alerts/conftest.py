"""A lake that is evaluated, and channels to nowhere."""

from pathlib import Path

import pytest

from eventlake.alerts import delivery as delivery
from eventlake.alerts.channels import Channel
from tests.support.alerts.lakes import BEGIN, Channels, FakeChannel, WatchedLake


@pytest.fixture
def channels(monkeypatch: pytest.MonkeyPatch) -> Channels:
    made = (FakeChannel("a"), FakeChannel("b"))
    named: dict[str, Channel] = {"email": made[0], "webhook": made[1]}
    monkeypatch.setattr(delivery, "channels_of", lambda source, environ: named)
    return made


@pytest.fixture
def watched(tmp_path: Path) -> WatchedLake:
    lake = WatchedLake(tmp_path, email_to="data@example.com")
    lake.run(BEGIN)
    lake.look(BEGIN, {})
    return lake
