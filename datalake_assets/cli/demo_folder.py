"""The demo's own folder: made by it, and only what it made is ever removed."""

import shutil
from pathlib import Path

from datalake_assets.instance.home import is_claimed
from eventlake.rules.errors import UsageError
from eventlake.sample import SampleSpec

SETTINGS = "lake.yaml"
STORAGE = "lake"
_HOME = ".dagster"
_MARK = ".datalake-demo"
_MADE = (SETTINGS, STORAGE, _HOME)
_HEAD = """\
# The settings of the demo; `datalake init` writes a file for your own lake, with every setting.
workspace_id: demo
storage: ./lake
sources:
"""


def fresh_folder(folder: Path) -> Path:
    """An empty lake with settings for the sample's sources; where the settings are."""
    _refuse_what_is_not_ours(folder)
    for name in _MADE:
        _remove(folder / name)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _MARK).write_text("Made by `datalake demo`, which may remove what it made here.\n")
    sources = (f"  - id: {source.id}\n    slug: {source.slug}\n" for source in SampleSpec.sources)
    file = folder / SETTINGS
    file.write_text(_HEAD + "".join(sources))
    return file


def _refuse_what_is_not_ours(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file. Name a folder for the demo with --folder.")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / _MARK).exists():
        raise UsageError(
            f"{folder} is not empty, and the demo did not make it, so it was left alone. Name "
            "another folder with --folder."
        )
    if is_claimed(folder / _HOME):
        raise UsageError(
            f"A UI runs on the lake in {folder}, which the demo makes anew. Stop `datalake dev` "
            "first, or name another folder with --folder."
        )


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
