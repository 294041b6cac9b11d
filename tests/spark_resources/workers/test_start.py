"""Workers of a cluster have our code in a folder that stays, whoever of them is the first."""

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from spark_resources.shipping.code import code_zip
from spark_resources.workers.start import unpacked


def test_the_code_is_unpacked_once_per_version_and_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    archive = tmp_path / "datalake.zip"
    archive.write_bytes(code_zip())
    with ThreadPoolExecutor(4) as several:
        [folder] = set(several.map(unpacked, [archive] * 4))
    assert (folder / "eventlake/columnar/events.py").exists()
    assert (folder / "spark_resources/workers/daemon.py").exists()
    made = folder.stat().st_mtime_ns
    assert unpacked(archive).stat().st_mtime_ns == made

    archive.write_bytes(archive.read_bytes() + b" ")
    assert unpacked(archive) != folder
