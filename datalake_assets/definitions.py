"""The code location: the component, for the lake that `lake.yaml` describes."""

import os
from collections.abc import Mapping
from pathlib import Path

import dagster as dg

from datalake_assets.component import EventLakeComponent
from datalake_assets.instance.home import VARIABLE, reserve_names
from datalake_assets.instance.snapshot import read_snapshot
from eventlake.settings.file import FILE_VARIABLE, find_settings


@dg.definitions
def defs() -> dg.Definitions:
    """Read the settings and the snapshot of tables, and nothing at import."""
    file = settings_file(os.environ, Path.cwd())
    if file is None:
        return no_lake_yet(Path.cwd())
    component = EventLakeComponent(config=str(file))
    lake = component.resource().open()
    if home := os.environ.get(VARIABLE):
        reserve_names(lake.settings, Path(home))
    return component.definitions(lake, read_snapshot(lake), alone=True)


DEMO = Path("demo/lake.yaml")
"""The default settings file of the demo."""


def settings_file(env: Mapping[str, str], folder: Path) -> Path | None:
    """`lake.yaml`, else that of the demo; None: neither is there, and no variable names one."""
    file = find_settings(None, env, folder)
    if env.get(FILE_VARIABLE) or file.exists():
        return file
    return next((demo for demo in [folder / DEMO] if demo.exists()), None)


def no_lake_yet(folder: Path) -> dg.Definitions:
    """A code location that loads without settings, and says what to do."""
    steps = f"""There is no `lake.yaml` in `{folder}`, so there are no event tables to show.

- To look around: `datalake demo` creates a lake from sample data in `demo/`.
- To use your own archive: `datalake init` writes a commented `lake.yaml`; fill it in, then run
  `datalake check`.

If the file is elsewhere, set `${FILE_VARIABLE}` to its path. Then choose **Reload definitions** in
**Deployment**.
"""
    return dg.Definitions(
        assets=[dg.AssetSpec("no_lake_yaml_yet", description=steps, group_name="start_here")]
    )
