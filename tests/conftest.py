"""What tests of all packages share: a local AWS, servers for alerts, a count of faults injected."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme

from eventlake.aws.access import forget_sessions
from eventlake.storage import LocalStorage, Storage
from tests.support.aws.enforced import Become, User
from tests.support.repo import injected
from tests.support.servers import azurite as azurite_server
from tests.support.servers.alerts import PASSWORD, Hook, MailBox, mail_server, web_hook
from tests.support.servers.aws import AwsServer, fresh_sessions, running_server
from tests.support.servers.azurite import Azurite, running_azurite
from tests.support.servers.metastore import MetastoreServer, clear, running_metastore


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


@pytest.fixture(scope="session")
def azurite_running() -> Iterator[Azurite]:
    """One server for all tests of a session; use `azurite`, and a new container for each."""
    with running_azurite() as server:
        yield server


@pytest.fixture
def azurite(azurite_running: Azurite, monkeypatch: pytest.MonkeyPatch) -> Iterator[Azurite]:
    """An Azure, which this process and those it starts take for the real one."""
    for name in ("AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_CLIENT_SECRET", "AZURE_STORAGE_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in azurite_running.environment.items():
        monkeypatch.setenv(name, value)
    with azurite_server.fresh_sessions():
        yield azurite_running


@pytest.fixture(scope="session")
def metastore_running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetastoreServer]:
    """One server for all tests of a session; use `metastore`, which is empty for each."""
    with running_metastore(tmp_path_factory.mktemp("metastore")) as server:
        yield server


@pytest.fixture
def metastore(metastore_running: MetastoreServer) -> MetastoreServer:
    clear(metastore_running)
    return metastore_running


@pytest.fixture(params=["folder", "bucket"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    """A lake's storage in a folder, and in a bucket."""
    if request.param == "folder":
        return LocalStorage(str(tmp_path))
    from eventlake.storage.s3 import S3Storage

    aws: AwsServer = request.getfixturevalue("aws")
    return S3Storage(f"s3://{aws.bucket()}/lake")


@pytest.fixture
def become(aws: AwsServer, monkeypatch: pytest.MonkeyPatch) -> Become:
    """From the call on, this process has the keys of a new user without some permissions."""

    def become(*denied: str, name: str = "dagster") -> User:
        user = User(aws, denied, name)
        for variable, value in user.environment.items():
            monkeypatch.setenv(variable, value)
        forget_sessions()
        return user

    return become


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    """Signs the certificates of servers for alerts."""
    return trustme.CA()


@pytest.fixture
def trusted(authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the authority has signed is right, here and now."""
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))


@pytest.fixture
def mail_box(
    authority: trustme.CA, trusted: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[MailBox]:
    monkeypatch.setenv("DATALAKE_SMTP_PASSWORD", PASSWORD)
    with mail_server(authority) as box:
        yield box


@pytest.fixture
def hook(authority: trustme.CA, trusted: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hook]:
    with web_hook(authority) as hook:
        monkeypatch.setenv("DATALAKE_WEBHOOK", hook.url)
        yield hook


@pytest.fixture
def dead_pid() -> int:
    """The id of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def pytest_sessionfinish(session: pytest.Session) -> None:
    """One of several workers hands over what it has counted."""
    if (told := getattr(session.config, "workeroutput", None)) is not None:
        told["injected"] = dict(injected)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    injected.update(getattr(node, "workeroutput", {}).get("injected", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How often something was broken on purpose, and made good."""
    if injected:
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in sorted(injected.items()))
        terminalreporter.write_line(f"faults injected: {injected.total():,} ({kinds})")
