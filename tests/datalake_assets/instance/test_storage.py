"""One `dagster.yaml` for laptop and production: a variable decides where runs are kept."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from datalake_assets.instance.home import URL_VARIABLE, VARIABLE, ensure_home
from eventlake.rules.errors import ServiceTrouble, UsageError
from tests.support.lakes.settings import settings_of
from tests.support.repo import reserved_port
from tests.support.servers.postgres import Postgres, running_postgres

SETTINGS = settings_of("x")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "home"))
    monkeypatch.setenv(URL_VARIABLE, "")
    return ensure_home(SETTINGS)


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with running_postgres() as server:
        yield server


@dg.op
def nothing() -> None:
    pass


@dg.job(executor_def=dg.in_process_executor)
def do_nothing() -> None:
    nothing()


def run(home: Path) -> str:
    with dg.DagsterInstance.from_config(str(home)) as instance:
        return do_nothing.execute_in_process(instance=instance).run_id


def known(home: Path) -> list[str]:
    with dg.DagsterInstance.from_config(str(home)) as instance:
        return [run.run_id for run in instance.get_runs()]


def test_without_the_variable_runs_are_where_dagster_itself_puts_them(home: Path) -> None:
    run_id = run(home)
    assert known(home) == [run_id]
    (home / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    assert known(home) == [run_id]


def test_with_it_they_are_in_postgres_and_nothing_in_the_home(
    home: Path, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(URL_VARIABLE, postgres.url)
    run_id = run(home)
    assert known(home) == [run_id]
    assert postgres.ask("SELECT run_id FROM runs") == [(run_id,)]
    assert not list(home.rglob("*.db"))
    monkeypatch.setenv(URL_VARIABLE, "")
    assert known(home) == []


def test_a_url_of_something_else_is_refused_without_showing_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(URL_VARIABLE, "mysql://me:secret@host/db")
    with pytest.raises(UsageError, match="does not begin with postgresql://") as told:
        known(home)
    assert "secret" not in str(told.value)


def test_a_server_that_does_not_answer_is_named_without_its_password(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with reserved_port() as port:
        monkeypatch.setenv(URL_VARIABLE, f"postgresql://me:secret@127.0.0.1:{port}/dagster")
        with pytest.raises(ServiceTrouble, match=f"127.0.0.1:{port}/dagster, from") as told:
            known(home)
    assert "secret" not in str(told.value)


def test_an_instance_file_that_nobody_edited_follows_the_release(home: Path) -> None:
    file, shipped = home / "dagster.yaml", home / ".dagster.yaml.shipped"
    ours = file.read_bytes()
    for one in (file, shipped):
        one.write_bytes(b"# of the last release\n")
    ensure_home(SETTINGS)
    assert file.read_bytes() == shipped.read_bytes() == ours

    file.write_bytes(ours + b"# mine\n")
    shipped.write_bytes(b"# of the last release\n")
    ensure_home(SETTINGS)
    assert file.read_bytes() == ours + b"# mine\n"


def test_an_edited_instance_file_of_an_older_release_finds_its_storage(home: Path) -> None:
    file = home / "dagster.yaml"
    edited = file.read_bytes() + b"# mine\n"
    moved = b"datalake_assets.instance.storage"
    assert moved in edited
    file.write_bytes(edited.replace(moved, b"datalake_assets.bookkeeping"))
    ensure_home(SETTINGS)
    assert file.read_bytes() == edited
    assert known(home) == []
