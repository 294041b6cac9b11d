"""The program as a whole: help, exit codes, `init`, and the layout of its output."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.core import TyperGroup

from datalake_assets.cli.app import COMMANDS as LINES
from datalake_assets.cli.app import globals_first, load
from datalake_assets.cli.text import headline, plain, plural, size, span
from eventlake.settings.file import load_settings
from tests.support.lakes.jobs import SETTINGS, SampleLake
from tests.support.repo import ROOT
from tests.support.terminal import Terminal, program

# In the order of the help: first what a new user needs.
COMMANDS = [
    "init", "check", "sync", "replay", "status", "alerts", "reports",
    "records", "find", "audit", "tables", "sql", "retype", "recover",
    "upkeep", "demo", "dev", "serve", "suppress", "aws",
]  # fmt: skip


def listed(help_text: str) -> list[str]:
    """The first word of each row in the box of commands."""
    box = help_text.split("─ Commands ─")[1]
    return re.findall(r"^│ (\S+) {2,}\S", box, flags=re.MULTILINE)


def test_help_lists_every_command_and_nothing_else(terminal: Terminal) -> None:
    said = terminal.run("--help")
    assert said.code == 0
    assert listed(said.out) == COMMANDS
    assert "completion" not in said.out


def leaves() -> Iterator[tuple[str, ...]]:
    """The words of every command, also of those in a group."""
    for name in COMMANDS:
        command = load(name)
        if isinstance(command, TyperGroup):
            yield from ((name, below) for below in command.commands)
        else:
            yield (name,)


LEAVES = list(leaves())


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_has_the_first_line_of_their_own_help(name: str) -> None:
    first = str(load(name).help).partition("\n\n")[0]
    assert " ".join(first.split()) == LINES[name]


@pytest.mark.parametrize("words", LEAVES, ids=" ".join)
def test_every_command_shows_examples(terminal: Terminal, words: tuple[str, ...]) -> None:
    said = terminal.run(*words, "--help")
    assert said.code == 0
    assert f"datalake {' '.join(words)}" in said.out.split("Examples:")[1]


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


def test_a_commented_file_is_written_that_works_as_it_is(
    terminal: Terminal, tmp_path: Path
) -> None:
    said = terminal.run("init")
    assert said.code == 0
    assert f"Wrote {tmp_path}/lake.yaml" in said.out
    assert "datalake check" in said.out
    assert load_settings(None, {}, tmp_path).source("web").database == "web"
    assert [path.name for path in tmp_path.iterdir()] == ["lake.yaml"]


def test_a_file_that_is_there_is_left_alone(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "lake.yaml").write_text("mine")
    said = terminal.run("init")
    assert said.code == 2
    assert "--force" in said.err
    assert (tmp_path / "lake.yaml").read_text() == "mine"


def test_unless_it_is_to_be_overwritten(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "lake.yaml").write_text("mine")
    assert terminal.run("init", "--force").code == 0
    assert "workspace_id" in (tmp_path / "lake.yaml").read_text()


def test_another_place_is_named_in_what_to_do_next(terminal: Terminal, tmp_path: Path) -> None:
    said = terminal.run("init", "--config", "shop/lake.yaml")
    assert f"datalake --config {tmp_path}/shop/lake.yaml check" in said.out
    assert (tmp_path / "shop/lake.yaml").exists()


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (9_940, "9.9 kB"),
        (9_950, "10 kB"),
        (999_499, "999 kB"),
        (999_500, "1.0 MB"),
        (123_456_789, "123 MB"),
        (5 * 10**18, "5000 PB"),
        (None, "-"),
    ],
)
def test_sizes_have_three_digits(count: int | None, shown: str) -> None:
    assert size(count) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-1, "0.0 s"),
        (0.44, "0.4 s"),
        (10, "10 s"),
        (59.6, "1 min"),
        (61, "1 min 1 s"),
        (3600, "1 h"),
        (3659, "1 h"),
        (7384, "2 h 3 min"),
        (86_400 * 44 + 3600 * 7 + 59, "44 d 7 h"),
        (86_400 + 59, "1 d"),
    ],
)
def test_lengths_of_time_have_two_units(seconds: float, shown: str) -> None:
    assert span(seconds) == shown


@pytest.mark.parametrize(("count", "shown"), [(0, "0 rows"), (1, "1 row"), (2000, "2,000 rows")])
def test_nouns_follow_their_number(count: int, shown: str) -> None:
    assert plural(count, "row") == shown


def test_control_characters_are_shown_and_letters_of_the_world_stay() -> None:
    assert plain("a\tb\r\n\x00\x1b\x9b Ж 李雷 🎉") == r"a\tb\r\n\x00\x1b\x9b Ж 李雷 🎉"


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        ("first\nsecond", "first"),
        ("X: y\nTraceback (most recent call last):\n  File z\nOSError: full\n", "OSError: full"),
        ("", "unknown"),
        (None, "unknown"),
    ],
)
def test_an_error_fits_into_a_line(error: str | None, shown: str) -> None:
    assert headline(error) == shown
