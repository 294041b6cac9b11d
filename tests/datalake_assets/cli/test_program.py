"""The program as a whole: help, exit codes, `init`, and the layout of its output."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.core import TyperGroup

from datalake_assets.cli.app import COMMANDS as LINES
from datalake_assets.cli.app import globals_first, load
from datalake_assets.cli.output import headline, size, span
from eventlake.rules.text import plain, plural
from eventlake.settings.file import load_settings
from tests.support.lakes.jobs import SampleLake
from tests.support.repo import ROOT
from tests.support.terminal import datalake, everything_below, program

# In the order of the help: first what a new user needs.
COMMANDS = [
    "init", "check", "sync", "replay", "status", "alerts", "reports",
    "records", "find", "audit", "tables", "sql", "retype", "recover",
    "upkeep", "demo", "dev", "console", "serve", "suppress", "aws",
]  # fmt: skip


def listed(help_text: str) -> list[str]:
    """The first word of each row in the box of commands."""
    box = help_text.split("─ Commands ─")[1]
    return re.findall(r"^│ (\S+) {2,}\S", box, flags=re.MULTILINE)


def test_help_lists_every_command_and_nothing_else() -> None:
    result = datalake("--help")
    assert listed(result.out) == COMMANDS
    assert "completion" not in result.out


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
def test_every_command_shows_examples(words: tuple[str, ...]) -> None:
    result = datalake(*words, "--help")
    assert f"datalake {' '.join(words)}" in result.out.split("Examples:")[1]


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
def test_options_of_the_program_may_be_anywhere(words: str, ordered: str) -> None:
    assert globals_first(words.split()) == ordered.split()


@pytest.mark.parametrize(
    "words", [(), ("synk",), ("sync", "--dry"), ("sql",), ("tables", "a", "b")]
)
def test_wrong_use_ends_with_2(words: tuple[str, ...]) -> None:
    datalake(*words, code=2)


SHOWN = "web_shop.track_order_completed"
REFUSED = {
    "audit --source nobody": "Source 'nobody' is not in the settings",
    "audit --source ios_prod --from yesterday": "'yesterday' is not a time",
    "audit --source ios_prod --from 2026-10-02 --to 2026-10-01": (
        "--from 2026-10-02 is not before --to 2026-10-01"
    ),
    "check --source web_shop": "--tables",
    "find nobody --source x": "'x' is not in the settings",
    "records --run 17": "No run of web_shop or ios_prod has the id '17'",
    "records --source nobody": "Source 'nobody' is not in the settings",
    "records --source web_shop --status lost": "'lost' is no status",
    "records --status rejected": "Which run? Give --run, or --source",
    "records --source web_shop --out r.txt": "the ending sets the format",
    "records --source web_shop --out no/r.csv": "in a folder that exists",
    "records --source web_shop --out r.csv --json": "exclude each other",
    "recover --source android": "'android' is not in the settings",
    "replay --source ios_prod": "--from",
    "replay --source ios_prod --from 2026-10-02 --to 2026-10-01": "is not before",
    "replay --source ios_prod --from 2026-10-01 --to 2026-10-02 --table scren": (
        "did you mean 'screen'?"
    ),
    "replay --source ios_prod --from 2026-10-01 --to 2026-10-02 --table scren --dry-run": (
        "did you mean 'screen'?"
    ),
    "replay --source android --from 2026-10-01 --to 2026-10-02": "'android' is not in the settings",
    "replay --source ios_prod --from 2026-09-28 --to 2026-10-02": (
        "the first day of source 'ios_prod' is 2026-10-01. Begin there, or set `start: 2026-09-28`"
    ),
    "replay --source ios_prod --from 2026-09-28 --to 2026-10-02 --dry-run": "the first day of",
    "replay --source ios_prod --from 2026-10-01 --to 2999-01-01": "today is",
    "reports --run 17": "No report has the run id '17'",
    "retype web_shp.page.x string --yes": "did you mean 'web_shop'?",
    "retype web_shop.pge.x string --yes": "did you mean 'page'?",
    f"retype {SHOWN}.property_total string --yes": "did you mean 'properties_",
    "retype web_shop.page.message_id bigint --yes": "message_id is a standard column",
    f"retype {SHOWN}.rescued_data bigint --yes": "rescued_data keeps",
    "retype web_shop.page bigint --yes": "write DB.TABLE.COLUMN",
    f"retype {SHOWN}.properties_total float --yes": (
        "'float' is no type of the lake; allowed are bigint, boolean"
    ),
    f"retype {SHOWN}.properties_total --yes": "Missing argument 'TYPE'",
    "sql 'SELEC 1'": "syntax error",
    "sql 'SELECT * FROM ios_prod.scren'": "Near it are: ios_prod.screen",
    "sql 'DROP TABLE ios_prod.screen'": "Only statements that read",
    "sql 'SELECT 1' --json --csv": "exclude each other",
    "suppress add": "No id was given",
    "suppress add ''": "No id was given",
    "suppress add --file nowhere.txt": "nowhere.txt cannot be read: No such file",
    "suppress add --file latin.txt": "latin.txt is not UTF-8 text",
    "suppress add u1 --source web_shp": "did you mean 'web_shop'?",
    "sync --source ios_prd": "did you mean 'ios_prod'?",
    "sync --from 2026-10-01": "--from and --to go together",
    "sync --from 2026-10-01 --to 2026-10-01": "is not before --to",
    "sync --from '1 Oct' --to 2026-10-01": "'1 Oct' is not a time",
    "tables web_shp": "no database 'web_shp'; did you mean 'web_shop'?",
    "tables web_shop.pge": "no table 'pge'; did you mean 'page'? `datalake tables web_shop`",
    "tables x.y": "databases: __segment_datalake, ios_prod, web_shop",
    "upkeep --source shop --dry-run": "'shop' is not in the settings",
}


@pytest.mark.parametrize(("command", "message"), REFUSED.items(), ids=REFUSED)
def test_wrong_words_are_refused_and_change_nothing(
    filled: SampleLake, command: str, message: str
) -> None:
    (filled.folder / "latin.txt").write_bytes(b"\xfc\n")
    before = everything_below(filled.folder)
    result = datalake(*shlex.split(command), code=2)
    assert (result.out, message in result.err) == ("", True), result.err
    shutil.rmtree(".dagster", ignore_errors=True)  # a replay opens it before it looks further
    assert everything_below(filled.folder) == before


def test_without_settings_the_message_explains_how_to_create_them() -> None:
    result = datalake("tables", code=2)
    assert f"There are no settings at {Path.cwd()}/lake.yaml" in result.err
    assert "datalake init" in result.err


def test_settings_are_found_by_option_then_environment_then_folder(
    filled: SampleLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = filled.folder / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    datalake("tables", code=2)
    monkeypatch.setenv("DATALAKE_CONFIG", "../lake.yaml")
    datalake("tables")
    assert "other.yaml" in datalake("tables", "--config", "other.yaml", code=2).err


def test_an_unexpected_error_is_one_line_unless_debug_is_given(settings_file: Path) -> None:
    table = settings_file.with_name("data") / "segment-data/_state/catalog/db/t/table.json"
    table.mkdir(parents=True)
    result = datalake("tables", code=1)
    assert result.err.startswith("error: internal error: ")
    assert result.err.endswith("(run with --debug for the stack trace)\n")
    assert result.err.count("\n") == 1
    with pytest.raises(OSError, match=r"table\.json"):
        datalake("tables", "--debug")


def test_the_program_hands_its_exit_code_to_the_shell(tmp_path: Path) -> None:
    result = program("tables", cwd=tmp_path, code=2)
    assert result.out == ""
    assert result.err.startswith("error: There are no settings")


def test_commands_that_only_read_load_neither_dagster_nor_spark_nor_the_kernel(
    filled: SampleLake,
) -> None:
    (record,) = datalake("records", "--source", "ios_prod", "--sample", "1", "--json").json
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
    _python(code, filled.folder)


def test_dagster_loads_the_definitions_without_spark_and_the_kernel(filled: SampleLake) -> None:
    code = """if True:
        import sys
        from datalake_assets.definitions import defs
        sys.exit(" ".join(sys.modules.keys() & {"pyspark", "py4j", "numba"}) or 0)
    """
    _python(code, filled.folder)


def _python(code: str, folder: Path) -> None:
    env = {"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_init_writes_a_commented_file_that_works_as_it_is(tmp_path: Path) -> None:
    result = datalake("init")
    assert f"Wrote {tmp_path}/lake.yaml" in result.out
    assert "datalake check" in result.out
    assert load_settings(None, {}, tmp_path).source("web").database == "web"
    assert [path.name for path in tmp_path.iterdir()] == ["lake.yaml"]


def test_init_overwrites_a_file_only_if_forced(tmp_path: Path) -> None:
    (tmp_path / "lake.yaml").write_text("mine")
    assert "--force" in datalake("init", code=2).err
    assert (tmp_path / "lake.yaml").read_text() == "mine"
    datalake("init", "--force")
    assert "workspace_id" in (tmp_path / "lake.yaml").read_text()


def test_init_elsewhere_names_the_file_in_what_to_do_next(tmp_path: Path) -> None:
    result = datalake("init", "--config", "shop/lake.yaml")
    assert f"datalake --config {tmp_path}/shop/lake.yaml check" in result.out
    assert (tmp_path / "shop/lake.yaml").exists()


def rows(count: int) -> str:
    return plural(count, "row")


@pytest.mark.parametrize(
    ("function", "value", "shown"),
    [
        (size, 0, "0 B"),
        (size, 999, "999 B"),
        (size, 1000, "1.0 kB"),
        (size, 9_940, "9.9 kB"),
        (size, 9_950, "10 kB"),
        (size, 999_499, "999 kB"),
        (size, 999_500, "1.0 MB"),
        (size, 123_456_789, "123 MB"),
        (size, 5 * 10**18, "5000 PB"),
        (size, None, "-"),
        (span, -1, "0.0 s"),
        (span, 0.44, "0.4 s"),
        (span, 10, "10 s"),
        (span, 59.6, "1 min"),
        (span, 61, "1 min 1 s"),
        (span, 3600, "1 h"),
        (span, 3659, "1 h"),
        (span, 7384, "2 h 3 min"),
        (span, 86_400 * 44 + 3600 * 7 + 59, "44 d 7 h"),
        (span, 86_400 + 59, "1 d"),
        (rows, 0, "0 rows"),
        (rows, 1, "1 row"),
        (rows, 2000, "2,000 rows"),
        (plain, "a\u202eb\u2066\u200f\ud800", r"a\u202eb\u2066\u200f\ud800"),
        (plain, "a\tb\r\n\x00\x1b\x9b Ж 李雷 🎉", r"a\tb\r\n\x00\x1b\x9b Ж 李雷 🎉"),
        (headline, "first\nsecond", "first"),
        (
            headline,
            "X: y\nTraceback (most recent call last):\n  F z\nOSError: full\n",
            "OSError: full",
        ),
        (headline, "", "unknown"),
        (headline, None, "unknown"),
    ],
)
def test_values_are_shown_short_and_in_one_line(
    function: Callable[[Any], str], value: object, shown: str
) -> None:
    assert function(value) == shown
