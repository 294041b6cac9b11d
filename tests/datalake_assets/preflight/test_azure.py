"""What `check` finds of a container and of a metastore."""

from pathlib import Path

import pytest

from datalake_assets.preflight import findings
from eventlake.azure.access import forget_sessions
from eventlake.catalog import external
from eventlake.lake import Lake
from tests.support.aws.preflight import signs
from tests.support.lakes.settings import SHOP, settings_of
from tests.support.repo import reserved_port
from tests.support.servers.azurite import ACCOUNT, Azurite, sas_of
from tests.support.servers.metastore import CONTAINER, MetastoreServer


@pytest.fixture
def place(azurite: Azurite) -> str:
    return f"abfss://{azurite.emptied(CONTAINER)}@{ACCOUNT}/lake"


def found(lake: Lake) -> dict[str, str]:
    """What is wrong, by what was looked at."""
    listed = list(findings(lake, lake.settings.sources))
    return {finding.what: finding.message for finding in listed if finding.error}


def test_a_healthy_lake_is_left_as_it_was(
    azurite: Azurite, place: str, metastore: MetastoreServer
) -> None:
    azurite.fill(CONTAINER, ["lake/segment-logs/S1/1790812800000/a.gz"])
    lake = Lake.open(settings_of(place, catalog="hive", hive={"uri": metastore.uri}))
    listed = signs(findings(lake, lake.settings.sources))
    looked = ("storage", "segment-stage", "segment-data", "sync_tracking_datasets", "catalog")
    assert {what: listed[what] for what in (*looked, "metastore")} == dict.fromkeys(
        (*looked, "metastore"), "✓"
    )
    assert list(azurite.content(CONTAINER)) == ["lake/segment-logs/S1/1790812800000/a.gz"]


def test_a_container_that_does_not_exist(azurite: Azurite) -> None:
    wrong = found(Lake.open(settings_of(f"abfss://no-such-container@{ACCOUNT}")))
    assert "has no container no-such-container" in wrong["storage"]
    assert "segment-stage" not in wrong


def test_a_sas_that_may_only_read(
    azurite: Azurite, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sas = sas_of(CONTAINER, "rl")
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", azurite.endpoint_only)
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", sas)
    forget_sessions()
    wrong = found(Lake.open(settings_of(place, azure={"sign_in": "sas"})))
    assert "Create one for the container with the permissions racwdl" in wrong["segment-stage"]
    assert "storage" not in wrong


def test_a_metastore_that_is_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(external, "_FIRST", 0.0)
    raw = tmp_path / "raw/1790812800000"
    raw.mkdir(parents=True)
    (raw / "a.json").write_text("")
    with reserved_port() as port:
        hive = {"uri": f"thrift://127.0.0.1:{port}"}
        source = SHOP | {"raw": str(tmp_path / "raw")}
        wrong = found(Lake.open(settings_of(tmp_path / "lake", source, catalog="hive", hive=hive)))
    assert wrong.keys() == {"catalog", "metastore"}
    assert "If it is down, start it" in wrong["catalog"]
