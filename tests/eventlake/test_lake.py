"""A lake, opened: its storage and catalog by the settings, its access by the source."""

import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from eventlake.aws.access import AwsAccess
from eventlake.catalog.glue import GlueCatalog
from eventlake.catalog.local import LocalCatalog
from eventlake.lake import Lake
from eventlake.settings.file import load_settings
from eventlake.storage import LocalStorage
from eventlake.storage.s3 import S3Storage
from tests.support.lakes.archive import track
from tests.support.lakes.runs import Runs
from tests.support.lakes.settings import settings_of

ROLE, OTHER = (f"arn:aws:iam::123456789012:role/{name}" for name in ("lake", "other"))


def opened(storage: str = "s3://bucket/lake", **settings: Any) -> Lake:
    sources: list[dict[str, object]] = [
        {"id": "A", "slug": "a"},
        {"id": "B", "slug": "b", "iam_role_arn": OTHER, "external_id": "own"},
        {"id": "C", "slug": "c", "region": "us-east-1"},
    ]
    return Lake.open(settings_of(storage, *sources, **settings))


def test_a_lake_in_a_folder_has_its_catalog_there(tmp_path: Path) -> None:
    lake = opened(storage=str(tmp_path))
    assert lake.storage == LocalStorage(str(tmp_path))
    assert lake.catalog == LocalCatalog(lake.storage)
    assert list(tmp_path.iterdir()) == []


def test_a_lake_in_a_bucket_is_opened_with_the_role_of_the_settings() -> None:
    lake = opened(iam_role_arn=ROLE, region="eu-west-1")
    access = AwsAccess("eu-west-1", ROLE, "W1")
    assert lake.storage == S3Storage("s3://bucket/lake", access)
    assert lake.catalog == LocalCatalog(lake.storage)
    glue = opened(iam_role_arn=ROLE, region="eu-west-1", catalog="glue").catalog
    assert isinstance(glue, GlueCatalog)
    assert glue.access == access


def test_a_source_may_have_its_own_role_and_region() -> None:
    lake = opened(iam_role_arn=ROLE, region="eu-west-1", catalog="glue")
    expected = {
        "a": AwsAccess("eu-west-1", ROLE, "W1"),
        "b": AwsAccess("eu-west-1", OTHER, "own"),
        "c": AwsAccess("us-east-1", ROLE, "W1"),
    }
    for slug, access in expected.items():
        own = lake.for_source(lake.settings.source(slug))
        assert isinstance(own.storage, S3Storage)
        assert isinstance(own.catalog, GlueCatalog)
        assert (own.storage.access, own.catalog.access) == (access, access)
        assert own.settings == lake.settings
    assert lake.for_source(lake.settings.source("a")) is lake


def test_what_concerns_all_sources_is_done_by_the_first_that_has_a_role() -> None:
    lake = opened(region="eu-west-1")
    by_b = AwsAccess.of(lake.settings.source("b"))
    assert lake.storage == S3Storage("s3://bucket/lake", by_b)
    assert lake.for_source(lake.settings.source("b")) is lake
    own = lake.for_source(lake.settings.source("a")).storage
    assert own == S3Storage("s3://bucket/lake", AwsAccess.of(lake.settings))


def test_a_lake_travels() -> None:
    for lake in (opened(), opened(catalog="glue", iam_role_arn=ROLE), opened(storage="x")):
        assert pickle.loads(pickle.dumps(lake)) == lake


@pytest.mark.parametrize("private", [True, False])
def test_files_with_personal_data_are_their_owners_alone(tmp_path: Path, private: bool) -> None:
    before = os.umask(0o022)
    try:
        runs = Runs(tmp_path / "lake", store=LocalStorage(str(tmp_path / "lake"), private=private))
        for id in ("m0", "m1", "m2"):
            runs.load("2026-10-01", track("Order", id, "2026-10-01T07:00", n=1), name=id)
        runs.compact()
        runs.come_home()
        runs.replay("2026-10-01", "2026-10-02")
        runs.upkeep()
    finally:
        os.umask(before)
    made = [p for p in runs.root.rglob("*") if "segment-logs" not in str(p)]
    modes = {(path.is_dir(), path.stat().st_mode & 0o777) for path in made}
    assert modes == (
        {(True, 0o700), (False, 0o600)} if private else {(True, 0o755), (False, 0o644)}
    )


def test_the_setting_opens_the_files(tmp_path: Path) -> None:
    text = f"workspace_id: W1\nstorage: {tmp_path}\nsources: [{{id: s, slug: s}}]\n"
    (tmp_path / "lake.yaml").write_text(f"{text}private_files: false\n")
    opened = Lake.open(load_settings(tmp_path / "lake.yaml", {}, tmp_path)).storage
    assert opened == LocalStorage(str(tmp_path), private=False)
