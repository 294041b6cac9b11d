"""The files of a deployment say what the product understands."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from datalake_assets.cli import serve
from datalake_assets.cli.app import app
from datalake_assets.instance.home import URL_VARIABLE, VARIABLE
from datalake_assets.instance.storage import Bookkeeping
from datalake_assets.jobs.sync import SCHEDULES_VARIABLE
from datalake_assets.sensors.reload import WEBSERVER_VARIABLE
from eventlake.settings.file import FILE_VARIABLE
from tests.support.repo import ROOT

DEPLOY = ROOT / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()


def test_every_part_of_dagster_is_there_once() -> None:
    ours = {name: one for name, one in COMPOSE["services"].items() if name != "postgres"}
    assert ours.keys() == {part.value for part in serve.Part}
    for name, service in ours.items():
        assert service["command"][:3] == ["datalake", "serve", name]
        assert service["image"] == "datalake"
        assert "deploy" not in service  # one of each: two daemons would do everything twice


def test_the_variables_are_those_that_are_read() -> None:
    told = COMPOSE["x-datalake"]["environment"]
    ours = {FILE_VARIABLE, VARIABLE, URL_VARIABLE, WEBSERVER_VARIABLE, SCHEDULES_VARIABLE}
    assert ours | {serve.CODE_VARIABLE} == {name for name, value in told.items() if value}
    assert told[serve.CODE_VARIABLE] == "code:4000"
    assert COMPOSE["services"]["code"]["command"][-1] == "4000"
    assert told[WEBSERVER_VARIABLE] == "webserver:3000"
    assert COMPOSE["services"]["webserver"]["command"][-1] == "3000"


def test_only_this_machine_reaches_the_ui_and_nothing_else_is_open() -> None:
    ports = {name: one.get("ports") for name, one in COMPOSE["services"].items()}
    assert ports.pop("webserver") == ["127.0.0.1:3000:3000"]
    assert set(ports.values()) == {None}


def test_what_has_no_default_is_in_the_example() -> None:
    asked = set(re.findall(r"\$\{(\w+):\?", (DEPLOY / "compose.yaml").read_text()))
    example = set(re.findall(r"^(\w+)=", (DEPLOY / "env.example").read_text(), re.MULTILINE))
    assert asked == example


def test_the_image_copies_what_there_is() -> None:
    copied = re.findall(r"^COPY (.+) \S+$", DOCKERFILE, re.MULTILINE)
    names = [name for line in copied for name in line.split()]
    assert names and all((ROOT / name).exists() for name in names)
    packages = {path.parent.name for path in ROOT.glob("*/py.typed")}
    assert packages <= set(names)
    assert "USER datalake" in DOCKERFILE


def test_volumes_are_declared() -> None:
    used = {
        volume.split(":")[0]
        for service in COMPOSE["services"].values()
        for volume in service["volumes"]
        if not volume.startswith("$")
    }
    assert used == set(COMPOSE["volumes"])


@pytest.mark.parametrize("part", serve.Part)
def test_every_command_is_taken(part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lake.yaml").write_text(
        "workspace_id: W1\nstorage: ./data\nsources: [{id: S1, slug: shop}]\n"
    )
    handed: list[list[str]] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "home"))
    monkeypatch.setenv(serve.CODE_VARIABLE, "code:4000")
    monkeypatch.setattr("os.execve", lambda _, command, environ: handed.append(command))
    monkeypatch.setattr("signal.signal", lambda *_: None)  # Ctrl-C stays as it is here
    words = COMPOSE["services"][part]["command"][1:]
    assert CliRunner().invoke(app, words).exit_code == 0
    [command] = handed
    assert command[1] == "-m"
    assert (tmp_path / "home/dagster.yaml").read_bytes() == (ROOT / "dagster.yaml").read_bytes()


def test_the_instance_file_names_our_storage() -> None:
    custom = yaml.safe_load((ROOT / "dagster.yaml").read_text())["storage"]["custom"]
    assert (custom["module"], custom["class"]) == (Bookkeeping.__module__, Bookkeeping.__name__)
