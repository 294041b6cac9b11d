"""Java starts from an archive of classes where there is one, and without a word where not."""

from pathlib import Path

import pytest

from spark_resources.engines import class_archive
from spark_resources.engines.class_archive import JAVA_OPTIONS, with_archive


def test_without_an_archive_the_settings_stay_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    assert with_archive({"a": "b"}) == {"a": "b"}


def test_an_archive_is_handed_to_java_beside_its_other_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    class_archive.archive().parent.mkdir(parents=True)
    class_archive.archive().touch()
    options = with_archive({JAVA_OPTIONS: "-Xmx1g"})[JAVA_OPTIONS].split()
    assert options == [
        "-Xmx1g",
        f"-XX:SharedArchiveFile={class_archive.archive()}",
        "-Xshare:auto",
        "-Xlog:disable",
    ]
