"""A variable decides where runs are kept: the copy of `dagster.yaml` in the home follows it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
import yaml

from datalake_assets.instance.home import (
    URL_VARIABLE,
    VARIABLE,
    ensure_home,
    opened_instance,
)
from eventlake.rules.errors import ServiceTrouble, UsageError
from tests.support.lakes.settings import settings_of
from tests.support.repo import ROOT, reserved_port
from tests.support.servers.postgres import Postgres, running_postgres

SETTINGS = settings_of("x")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "home"))
    monkeypatch.setenv(URL_VARIABLE, "")
    return ensure_home(SETTINGS)


def test_the_home_is_its_owners_alone_unless_files_are_not_private(home: Path) -> None:
    assert home.stat().st_mode & 0o777 == 0o700
    home.chmod(0o755)
    ensure_home(settings_of("x", private_files=False))
    assert home.stat().st_mode & 0o777 == 0o755
    ensure_home(SETTINGS)
    assert home.stat().st_mode & 0o777 == 0o700


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
    with opened_instance(home) as instance:
        return do_nothing.execute_in_process(instance=instance).run_id


def known(home: Path) -> list[str]:
    with opened_instance(ensure_home(SETTINGS)) as instance:
        return [run.run_id for run in instance.get_runs()]


def test_without_the_variable_runs_are_kept_where_dagster_keeps_them(home: Path) -> None:
    run_id = run(home)
    assert known(home) == [run_id]
    (home / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    assert known(home) == [run_id]


def test_with_it_they_are_kept_in_postgres_only(
    home: Path, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(URL_VARIABLE, postgres.url)
    ensure_home(SETTINGS)
    run_id = run(home)
    assert known(home) == [run_id]
    assert postgres.ask("SELECT run_id FROM runs") == [(run_id,)]
    assert not list(home.rglob("*.db"))
    monkeypatch.setenv(URL_VARIABLE, "")
    assert known(home) == []


@pytest.mark.parametrize(
    ("url", "error", "message"),
    [
        ("mysql://me:secret@host/db", UsageError, "does not begin with postgresql://"),
        (
            "postgresql://me:secret@127.0.0.1:{port}/db",
            ServiceTrouble,
            r"127\.0\.0\.1:\d+/db, from",
        ),
    ],
    ids=["another database", "no answer"],
)
def test_an_error_names_the_server_without_its_password(
    home: Path, monkeypatch: pytest.MonkeyPatch, url: str, error: type[Exception], message: str
) -> None:
    with reserved_port() as port:
        monkeypatch.setenv(URL_VARIABLE, url.format(port=port))
        with pytest.raises(error, match=message) as raised:
            known(home)
    assert "secret" not in str(raised.value)


def test_an_unedited_instance_file_follows_the_release(home: Path) -> None:
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


OLD_STORAGE = """storage:
  custom:
    module: datalake_assets.{}
    class: Bookkeeping
    config: {{}}
"""


@pytest.mark.parametrize("module", ["bookkeeping", "instance.storage"])
def test_an_edited_instance_file_of_an_older_release_loses_our_storage_class(
    home: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    file = home / "dagster.yaml"
    edited = file.read_text() + "# mine\n"
    file.write_text(OLD_STORAGE.format(module) + edited)
    assert known(home) == []
    assert file.read_text() == edited
    monkeypatch.setenv(URL_VARIABLE, "postgres://me@host/db")
    ensure_home(SETTINGS)
    assert os.environ[URL_VARIABLE] == "postgresql+psycopg2://me@host/db"
    assert yaml.safe_load(file.read_text())["storage"] == {
        "postgres": {"postgres_url": {"env": URL_VARIABLE}}
    }


def test_a_storage_of_the_users_own_stays(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = home / "dagster.yaml"
    own = "storage:\n  sqlite:\n    base_dir: /somewhere\n"
    file.write_text(own)
    monkeypatch.setenv(URL_VARIABLE, "postgresql://me@host/db")
    ensure_home(SETTINGS)
    assert file.read_text() == own


def test_several_processes_may_open_a_new_home_at_the_same_time(home: Path) -> None:
    """Without a lock, about every second attempt leaves databases that no process can open."""
    program = (
        "import sys, pathlib, dagster; from datalake_assets.instance.home import opened_instance\n"
        "print('ready', flush=True); home = pathlib.Path(sys.stdin.read())\n"
        "with opened_instance(home) as instance: instance.get_runs()"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for process in processes:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(str(home))
        process.stdin.close()
        process.stdin = None
    errors = [process.communicate()[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * 4, errors
    assert known(home) == []


def test_sources_of_two_lakes_with_one_name_are_refused(home: Path, tmp_path: Path) -> None:
    """Unless they are the same lake, or the other lake or the home has moved."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    copied = home.parent / "other"
    ensure_home(settings_of(first, {"id": "S1", "slug": "web"}))
    ensure_home(settings_of(first, {"id": "S1", "slug": "web"}))
    ensure_home(settings_of(second, {"id": "S1", "slug": "ios"}))
    with pytest.raises(UsageError, match=r"same name as one of the lake in .*first") as refused:
        ensure_home(settings_of(second, {"id": "S2", "slug": "web"}))
    assert f"Set ${VARIABLE} to another folder" in str(refused.value)
    shutil.copytree(home, copied)
    os.environ[VARIABLE] = str(copied)
    ensure_home(settings_of(second, {"id": "S2", "slug": "web"}))
    os.environ[VARIABLE] = str(home)
    first.rmdir()
    ensure_home(settings_of(second, {"id": "S2", "slug": "web"}))
