"""Finding and reading `lake.yaml`, with every problem in it told at once and in its place."""

from collections.abc import Mapping
from pathlib import Path

from eventlake.rules.errors import Problem, SettingsError, UsageError
from eventlake.settings import Settings
from eventlake.settings_problems import settings_problems
from eventlake.settings_yaml import read_document

DEFAULT_FILE = "lake.yaml"
FILE_VARIABLE = "DATALAKE_CONFIG"


def load_settings(path: Path | None, env: Mapping[str, str], cwd: Path) -> Settings:
    """The settings from `--config`, else `$DATALAKE_CONFIG`, else `./lake.yaml`."""
    file = find_settings(path, env, cwd)
    document = read_document(file.name, _read(file))
    if problems := settings_problems(document):
        count = "1 setting is" if len(problems) == 1 else f"{len(problems)} settings are"
        raise SettingsError(f"{file} cannot be used: {count} wrong.", problems)
    return Settings.model_validate({**document.content, "config_folder": file.parent})


def find_settings(path: Path | None, env: Mapping[str, str], cwd: Path) -> Path:
    """Where the settings are looked for, always absolute; nothing need be there."""
    named = path or Path(env.get(FILE_VARIABLE) or DEFAULT_FILE)
    return (cwd / named.expanduser()).absolute()


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8-sig")
    except FileNotFoundError:
        raise UsageError(
            f"There are no settings at {file}. Write a commented file with `datalake init`, "
            f"or name yours with --config or ${FILE_VARIABLE}."
        ) from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        problem = Problem(f"{file.name}:{line}", "bytes that are not UTF-8", "save it as UTF-8")
        raise SettingsError(f"{file} cannot be read.", [problem]) from error
    except OSError as error:
        raise UsageError(
            f"The settings at {file} cannot be read: {error.strerror}. Name a readable file with "
            f"--config or ${FILE_VARIABLE}."
        ) from error
