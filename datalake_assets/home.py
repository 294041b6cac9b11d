"""Where Dagster keeps its own files: `$DAGSTER_HOME`, else `.dagster` beside `lake.yaml`."""

import os
import shutil
from pathlib import Path

from lake.settings import Settings

VARIABLE = "DAGSTER_HOME"
_INSTANCE_FILE = Path(__file__).with_name("dagster.yaml")


def home_of(settings: Settings) -> Path:
    """Where the home is, or would be."""
    given = os.environ.get(VARIABLE)
    home = Path(given) if given else settings.config_folder / ".dagster"
    return home.expanduser().absolute()


def ensure_home(settings: Settings) -> Path:
    """A home that works: made, given its `dagster.yaml`, and put into the environment."""
    home = home_of(settings)
    home.mkdir(parents=True, exist_ok=True)
    if not (home / "dagster.yaml").exists():
        shutil.copyfile(_INSTANCE_FILE, home / "dagster.yaml")
    os.environ[VARIABLE] = str(home)
    return home
