"""Where Dagster keeps its own files: `$DAGSTER_HOME`, else `.dagster` beside `lake.yaml`."""

import os
import shutil
from pathlib import Path

from lake.settings import Settings

VARIABLE = "DAGSTER_HOME"
_INSTANCE_FILE = Path(__file__).with_name("dagster.yaml")


def ensure_home(settings: Settings) -> Path:
    """A home that works: made, given its `dagster.yaml`, and put into the environment."""
    given = os.environ.get(VARIABLE)
    home = Path(given) if given else settings.config_folder / ".dagster"
    home = home.expanduser().absolute()
    home.mkdir(parents=True, exist_ok=True)
    if not (home / "dagster.yaml").exists():
        shutil.copyfile(_INSTANCE_FILE, home / "dagster.yaml")
    os.environ[VARIABLE] = str(home)
    return home
