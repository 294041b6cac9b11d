"""Folders from which code is executed belong to this user alone."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from eventlake.columnar.private_folder import CHECKSUMS, VARIABLE, is_private, private_folder


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    private_folder.cache_clear()
    yield
    private_folder.cache_clear()


def writable_for_others(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o777)


def link_to_a_folder_of_this_user(folder: Path) -> None:
    shared = folder.with_name("shared")
    shared.mkdir(mode=0o700)
    folder.symlink_to(shared)


def a_file(folder: Path) -> None:
    folder.touch()


@pytest.mark.parametrize(
    "plant",
    [writable_for_others, link_to_a_folder_of_this_user, a_file],
)
def test_a_folder_that_others_could_have_filled_is_not_used(
    plant: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "cache"
    plant(folder)
    assert not is_private(folder)
    monkeypatch.setenv(VARIABLE, str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    assert private_folder() == tmp_path / "other" / "eventlake"


def test_a_folder_of_another_user_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_private(tmp_path / "cache")
    monkeypatch.setattr("os.getuid", lambda: tmp_path.stat().st_uid + 1)
    assert not is_private(tmp_path / "cache")


def test_a_new_folder_is_closed_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "new" / "cache"))
    folder = private_folder()
    assert folder == tmp_path / "new" / "cache"
    assert folder.stat().st_mode & 0o777 == 0o700


def test_without_any_usable_folder_a_new_one_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eventlake.columnar.private_folder.is_private", lambda folder: False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = private_folder()
    assert folder.parent == tmp_path and folder.stat().st_mode & 0o777 == 0o700


def test_the_first_start_says_that_it_compiles(tmp_path: Path) -> None:
    """A program of its own: the kernels of this process are loaded."""
    environment = {**os.environ, VARIABLE: str(tmp_path / "cache")}

    def first() -> str:
        code = (
            "from eventlake.columnar.private_folder import first_start; print(first_start())\n"
            "import sys; assert 'numba' not in sys.modules"
        )
        return subprocess.check_output([sys.executable, "-c", code], env=environment, text=True)

    assert f"keeps the result in {tmp_path}/cache/kernel-" in first()
    [folder] = (tmp_path / "cache").iterdir()
    (folder / CHECKSUMS).write_text("{}")
    assert first() == "None\n"
