"""A lake that somebody looks at, and ways to nowhere."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from eventlake.alerts import delivery as looking
from eventlake.alerts.channels.base import Channel
from tests.support.alerts.lakes import BEGIN, WatchedLake, Way


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Way, Way]]:
    made = (Way("a"), Way("b"))
    named: dict[str, Channel] = {"email": made[0], "webhook": made[1]}
    monkeypatch.setattr(looking, "channels", lambda source, environ: named)
    yield made


@pytest.fixture
def watched(tmp_path: Path) -> WatchedLake:
    lake = WatchedLake(tmp_path, email_to="data@example.com")
    lake.run(BEGIN)
    lake.look(BEGIN, {})
    return lake
