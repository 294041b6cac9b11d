"""Every command of the README, run as it stands there; only the folders are the test's own."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from datalake_assets.assets.running import new_job
from datalake_assets.cli.demo import STORAGE, fresh_folder
from eventlake.lake import Lake
from eventlake.runs.context import Silent
from eventlake.sample import IOS_PROD, SampleSpec, write_archive
from eventlake.settings.file import load_settings
from eventlake.settings.models import Settings
from spark_resources.dataflow.job import run_job
from tests.support.lakes.in_process import InProcess
from tests.support.terminal import Terminal

REPO = Path(__file__).parent.parent
README = (REPO / "README.md").read_text()
DATALAKE = ".venv/bin/datalake"


def blocks(language: str) -> list[str]:
    """The fenced blocks of one language, without the indentation of lists."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```", README, re.MULTILINE | re.DOTALL)
    return [re.sub(rf"^{indent}", "", body, flags=re.MULTILINE) for indent, body in found]


COMMANDS = [
    shlex.split(line, comments=True) for block in blocks("sh") for line in block.splitlines()
]
ON_THE_DEMO = [
    words[3:] for words in COMMANDS if words[:3] == [DATALAKE, "--config", "demo/lake.yaml"]
]
ON_YOUR_OWN = [words[1:] for words in COMMANDS if words[0] == DATALAKE and "--config" not in words]
INLINE = re.findall(r"`datalake ((?:[a-z]+ ?)+)([^`]*)`", README)


def program(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The program as README's `.venv/bin/datalake`, whatever environment the tests run in."""
    command = [sys.executable, "-m", "datalake_assets.cli", *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def test_the_commands_are_those_that_are_tried_below() -> None:
    made = [words for words in COMMANDS if words[0] == "make"]
    assert made == [["make", "demo"], ["make", "test"], ["make", "dev"]]
    assert [words[0] for words in ON_THE_DEMO] == ["tables", "sql", "reports", "status"]
    assert [words[0] for words in ON_YOUR_OWN] == ["init", "check", "sync"]
    assert len(COMMANDS) == len(made) + len(ON_THE_DEMO) + len(ON_YOUR_OWN)
    assert "make test" in README and "test" in (REPO / ".ci/run").read_text()


@pytest.mark.parametrize(("command", "rest"), INLINE, ids=lambda value: str(value).strip())
def test_a_command_of_the_tables_has_the_options_it_is_shown_with(
    command: str, rest: str, capsys: pytest.CaptureFixture[str]
) -> None:
    told = Terminal(capsys).run(*command.split(), "--help")
    assert told.code == 0
    for option in re.findall(r"--[a-z-]+", rest):
        assert option in told.out


@pytest.mark.parametrize(
    ("words", "program"),
    [(["demo", "DEMO=x"], "demo --folder x"), (["dev", "PORT=99"], "dev --port 99")],
)
def test_what_make_starts_is_set_up_before(words: list[str], program: str) -> None:
    """What these programs do is tried with their commands."""
    told = subprocess.run(
        ["make", "-n", "--no-print-directory", *words],
        cwd=REPO,
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.splitlines() == ["scripts/setup", f"{DATALAKE} {program}"]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a demo, whose lake is smaller and made without Spark."""
    folder = tmp_path_factory.mktemp("readme") / "demo"
    lake = Lake.open(load_settings(fresh_folder(folder), {}, folder))
    write_archive(folder / STORAGE, SampleSpec(days=2, events_per_day=80, files_per_day=1, hours=3))
    for source in lake.settings.sources:
        list(run_job(new_job(lake.settings, source, ""), InProcess, Silent()))
    return folder


@pytest.mark.parametrize("words", ON_THE_DEMO, ids=lambda words: str(words[0]))
def test_what_the_readme_asks_the_demo_is_answered(words: list[str], demo: Path) -> None:
    told = program("--config", str(demo / "lake.yaml"), *words, cwd=demo)
    assert told.returncode == 0, told.stderr
    assert told.stdout.strip()


@pytest.mark.e2e
def test_your_own_data_in_the_steps_of_the_readme(tmp_path: Path) -> None:
    init, check, sync = ON_YOUR_OWN
    assert program(*init, cwd=tmp_path).returncode == 0
    settings, _ = blocks("yaml")
    (tmp_path / "lake.yaml").write_text(settings)
    sample = SampleSpec(days=1, events_per_day=50, files_per_day=1, hours=2)
    write_archive(tmp_path / "data", sample)

    assert program(*check, cwd=tmp_path).returncode == 0
    done = program(*sync, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / f"data/segment-data/data/{IOS_PROD.id}").rglob("*.parquet"))


def test_three_other_lines_make_it_a_lake_on_aws() -> None:
    at_home, on_aws = (yaml.safe_load(block) for block in blocks("yaml"))
    assert len(on_aws) == 3
    lake = Settings.model_validate(at_home | on_aws | {"emr_cluster_id": "j-3SXSUSDNPIS"})
    assert (lake.storage, lake.catalog, lake.engine) == tuple(on_aws.values())


def test_its_pictures_and_links_are_there() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (REPO / target).exists(), target
