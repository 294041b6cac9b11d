"""The program around the commands: help, global options, how it ends."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from datalake_assets.cli.app import globals_first
from tests.datalake_assets.cli.conftest import SETTINGS, SampleLake
from tests.support.repo import ROOT
from tests.support.terminal import Terminal, program

COMMANDS = ["init", "check", "sync", "replay", "status", "reports", "tables", "sql", "demo", "dev"]


def test_help_lists_every_command_and_nothing_else(terminal: Terminal) -> None:
    said = terminal.run("--help")
    listed = said.out.split("Commands")[1]
    assert said.code == 0
    assert [word for word in listed.split() if word in COMMANDS] == COMMANDS
    assert "completion" not in said.out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_shows_examples(terminal: Terminal, command: str) -> None:
    said = terminal.run(command, "--help")
    assert said.code == 0
    assert f"datalake {command}" in said.out.split("Examples:")[1]


@pytest.mark.parametrize(
    ("words", "ordered"),
    [
        ("check --config a.yaml", "--config a.yaml check"),
        ("--config a.yaml check", "--config a.yaml check"),
        ("sql q --config=a.yaml --debug --json", "--config=a.yaml --debug sql q --json"),
        ("sql -- --debug --config x", "sql -- --debug --config x"),
        ("check --config", "--config check"),
    ],
)
def test_options_of_the_program_may_stand_anywhere(words: str, ordered: str) -> None:
    assert globals_first(words.split()) == ordered.split()


@pytest.mark.parametrize(
    "words", [(), ("synk",), ("sync", "--dry"), ("sql",), ("tables", "a", "b")]
)
def test_wrong_use_ends_with_2(terminal: Terminal, words: tuple[str, ...]) -> None:
    assert terminal.run(*words).code == 2


def test_without_settings_the_message_says_how_to_get_some(terminal: Terminal) -> None:
    said = terminal.run("tables")
    assert said.code == 2
    assert f"There are no settings at {Path.cwd()}/lake.yaml" in said.err
    assert "datalake init" in said.err


def test_settings_are_found_by_option_then_environment_then_folder(
    terminal: Terminal, filled: SampleLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = filled.folder / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert terminal.run("tables").code == 2
    monkeypatch.setenv("DATALAKE_CONFIG", "../lake.yaml")
    assert terminal.run("tables").code == 0
    assert "other.yaml" in terminal.run("tables", "--config", "other.yaml").err


def test_what_nobody_foresaw_is_one_line_unless_asked_for_more(
    terminal: Terminal, tmp_path: Path
) -> None:
    (tmp_path / "lake.yaml").write_text(SETTINGS)
    (tmp_path / "data/segment-data/_state/catalog/db/t/table.json").mkdir(parents=True)
    said = terminal.run("tables")
    assert said.code == 1
    assert said.err.startswith("error: internal error: ")
    assert said.err.endswith("(run with --debug for the stack trace)\n")
    assert said.err.count("\n") == 1
    with pytest.raises(OSError, match=r"table\.json"):
        terminal.run("tables", "--debug")


def test_the_program_hands_its_exit_code_to_the_shell(tmp_path: Path) -> None:
    said = program("tables", cwd=tmp_path)
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("error: There are no settings")


def test_commands_that_only_read_load_neither_dagster_nor_spark_nor_the_kernel(
    terminal: Terminal, filled: SampleLake
) -> None:
    (record,) = terminal.run("records", "--source", "ios_prod", "--sample", "1", "--json").json
    commands = [
        ["init", "--config", "new.yaml"],
        ["check"],
        ["status"],
        ["reports"],
        ["tables"],
        ["alerts"],
        ["records"],
        ["find", record["identifier"]],
        ["audit", "--source", "ios_prod"],
        ["upkeep", "--dry-run"],
        ["sql", "SELECT 1"],
    ]
    code = f"""if True:
        import sys
        from datalake_assets.cli import main
        for words in {commands}:
            code = main(words)
            loaded = {{name.partition(".")[0] for name in sys.modules}}
            heavy = loaded & {{"dagster", "pyspark", "py4j", "numba"}}
            if code or heavy:
                sys.exit(f"{{words}}: {{code}} {{heavy}}")
    """
    done = _python(code, filled.folder)
    assert done.returncode == 0, done.stderr


def test_dagster_loads_the_definitions_without_spark_and_the_kernel(filled: SampleLake) -> None:
    code = """if True:
        import sys
        from datalake_assets.definitions import defs
        sys.exit(" ".join(sys.modules.keys() & {"pyspark", "py4j", "numba"}) or 0)
    """
    done = _python(code, filled.folder)
    assert done.returncode == 0, done.stderr


def _python(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
