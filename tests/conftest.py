"""What tests of all packages share: a local AWS, and a count of the faults that were injected."""

from collections.abc import Iterator

import pytest

from tests.aws_server import AwsServer, fresh_sessions, running_server
from tests.injected import injected


@pytest.fixture(scope="session")
def aws_server() -> Iterator[AwsServer]:
    """One server for all tests of a session; use `aws`, which is empty for each."""
    with running_server() as server:
        yield server


@pytest.fixture
def aws(aws_server: AwsServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[AwsServer]:
    """An empty AWS, which this process and those it starts take for the real one."""
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_SESSION_TOKEN", "AWS_ROLE_ARN"):
        monkeypatch.delenv(name, raising=False)
    for name, value in aws_server.environment.items():
        monkeypatch.setenv(name, value)
    aws_server.reset()
    with fresh_sessions():
        yield aws_server


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How often something was broken on purpose, and made good."""
    if injected:
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in sorted(injected.items()))
        terminalreporter.write_line(f"faults injected: {injected.total():,} ({kinds})")
