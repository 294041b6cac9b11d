"""Archives on disk, made once for every recipe."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from msgspec.json import decode, encode

from benchmarks.recipe import SOURCE, Recipe
from benchmarks.reshape import more_columns, one_type, reshape
from benchmarks.truth import Truth, truth_of
from eventlake.sample import write_archive

RAW = f"segment-logs/{SOURCE.id}"


@dataclass(frozen=True, slots=True)
class Archive:
    """Raw files below `folder`, laid out as in a lake, and what must become of them."""

    folder: Path
    recipe: Recipe
    truth: Truth

    @property
    def files(self) -> list[Path]:
        return raw_files(self.folder)

    @property
    def size(self) -> int:
        return sum(path.stat().st_size for path in self.files)

    def link_into(self, storage: Path) -> None:
        """Put the raw files below a lake's storage, at no cost; those that are there stay."""
        for path in self.files:
            target = storage / path.relative_to(self.folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists():
                os.link(path, target)


def raw_files(folder: Path) -> list[Path]:
    """In the order in which the events were received."""
    return sorted((folder / RAW).rglob("*.gz"))


def make_archive(cache: Path, recipe: Recipe) -> Archive:
    """Generate the archive, unless an earlier run has."""
    folder = cache / recipe.name
    told = folder / "truth.json"
    if not told.exists():
        shutil.rmtree(folder, ignore_errors=True)
        account = write_archive(folder, recipe.spec, sources=[SOURCE])
        reshaped = _reshape(folder, recipe)
        truth = truth_of(raw_files(folder))
        expected = account.expected(SOURCE.id)
        if not reshaped and truth.slots != {
            f"{slot.table}/{slot.day}/{slot.hr}": rows for slot, rows in expected.rows.items()
        }:
            raise RuntimeError("the sample's account and its raw JSON disagree")
        told.write_bytes(encode(truth))
    return Archive(folder, recipe, decode(told.read_bytes(), type=Truth))


def _reshape(folder: Path, recipe: Recipe) -> bool:
    files = raw_files(folder)
    if recipe.one_table:
        change = one_type(files[0])
    elif recipe.columns:
        change = more_columns(recipe.columns, recipe.columns_each)
    else:
        return False
    for path in files:
        reshape(path, change)
    return True
