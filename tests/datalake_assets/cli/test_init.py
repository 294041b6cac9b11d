"""`datalake init`."""

from pathlib import Path

from eventlake.settings.file import load_settings
from tests.support.terminal import Terminal


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
