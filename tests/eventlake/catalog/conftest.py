"""The same catalog in all its forms."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from eventlake.aws.access import AwsAccess
from eventlake.catalog.base import Catalog
from eventlake.catalog.glue import GlueCatalog
from eventlake.catalog.hive import HiveCatalog
from eventlake.catalog.local import LocalCatalog
from eventlake.storage import LocalStorage
from eventlake.storage.s3 import S3Storage
from tests.support.catalogs.by_hand import ORDERS
from tests.support.servers.aws import ACCOUNT, AwsServer
from tests.support.servers.glue import StrictGlue, strict_glue
from tests.support.servers.metastore import MetastoreServer


@pytest.fixture
def glue(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[StrictGlue]:
    """An empty Glue that keeps to its rules."""
    yield strict_glue(request.getfixturevalue("aws"), monkeypatch)


@pytest.fixture
def glue_catalog(glue: StrictGlue) -> GlueCatalog:
    return GlueCatalog("s3://lake-bucket/some/prefix", AwsAccess(), ACCOUNT)


@pytest.fixture
def hive_catalog(metastore: MetastoreServer, tmp_path: Path) -> HiveCatalog:
    return HiveCatalog(str(tmp_path / "lake"), metastore.settings)


@pytest.fixture(params=["local", "local on S3", "glue", "hive"])
def empty_catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Catalog:
    """A catalog without anything in it."""
    if request.param == "local":
        return LocalCatalog(LocalStorage(str(tmp_path)))
    if request.param == "local on S3":
        server: AwsServer = request.getfixturevalue("aws")
        return LocalCatalog(S3Storage(f"s3://{server.bucket()}/lake"))
    found: Catalog = request.getfixturevalue(f"{request.param}_catalog")
    return found


@pytest.fixture
def catalog(empty_catalog: Catalog) -> Catalog:
    """A catalog with the table of orders."""
    empty_catalog.ensure_database("shop")
    empty_catalog.create_table(ORDERS)
    return empty_catalog
