"""Settings: defaults, derived values, and the settings of alerts."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from eventlake.rules.errors import InvalidSetting, SettingsError, UnknownSource
from eventlake.rules.names import Naming
from eventlake.rules.partitions import DatePartition
from eventlake.settings.alerts import Alerts, secret_of
from eventlake.settings.file import load_settings
from eventlake.settings.models import Limits, Settings, Source, Tracking
from tests.support.lakes.settings import settings_of

WEB = {"id": "web01", "slug": "web"}


def settings(*sources: dict[str, Any], **top: Any) -> Settings:
    """Minimal settings plus those of the test."""
    return settings_of(top.pop("storage", "./lake"), *(sources or (WEB,)), **top)


def test_a_table_may_be_named_as_in_the_catalog() -> None:
    source = settings({"id": "S1", "slug": "web", "table_prefix": "ios"}).sources[0]
    names = ("web.ios_page", "web.page", "page", "ios_page", "shop.page")
    assert [*map(source.own_table, names)] == ["page", "page", "page", "ios_page", "shop.page"]


def test_a_source_with_only_id_and_slug_has_the_documented_defaults() -> None:
    source = settings({"id": "9IP56Shn6", "slug": "iOS-Prod"}).sources[0]
    assert source.raw == "segment-logs/9IP56Shn6"
    assert source.database == "i_os_prod"
    assert source.name == "i_os_prod"
    assert source.table_prefix is None
    assert source.enabled is True
    assert source.date_partition is DatePartition.DAY_HOUR
    assert source.naming is Naming.NATIVE
    assert source.skip_events == ()
    assert source.start is None
    assert source.dedup_days == 7
    assert source.load_without_message_id is False
    assert source.tracking is Tracking.REJECTED
    assert source.external_id == "W1"
    assert source.retention.record_log_days == 14
    assert source.limits == Limits(line_bytes=2**20, depth=64, columns=2000, tables=1000)
    assert source.limits.catalog_databases == 10_000
    assert source.limits.catalog_tables == 200_000
    assert source.limits.column_name == 250
    source = Source(id="web01", slug="web")
    assert (source.raw, source.database) == ("segment-logs/web01", "web")


def test_settings_at_the_top_are_the_defaults_of_all_sources() -> None:
    lake = settings(
        WEB,
        {"id": "ios01", "slug": "ios", "dedup_days": 1, "limits": {"depth": 9}, "region": None},
        dedup_days=3,
        region="eu-west-1",
        tracking="all",
        limits={"columns": 10, "depth": 10},
    )
    web, ios = lake.sources
    assert (web.dedup_days, ios.dedup_days) == (3, 1)
    assert (web.region, ios.region) == ("eu-west-1", "eu-west-1")
    assert (web.tracking, ios.tracking) == (Tracking.ALL, Tracking.ALL)
    assert (web.limits.columns, web.limits.depth) == (10, 10)
    assert (ios.limits.columns, ios.limits.depth) == (10, 9)
    by_hand = (Source(id="a", slug="a"), Source(id="b", slug="b", dedup_days=1))
    lake = Settings(workspace_id="W1", storage="x", dedup_days=3, sources=by_hand)
    assert [source.dedup_days for source in lake.sources] == [3, 1]


def test_settings_survive_json_and_do_not_change() -> None:
    source = {**WEB, "start": "2026-10-01", "skip_events": ["Ping"]}
    lake = settings(source, config_folder=Path("/somewhere"))
    assert Settings.model_validate_json(lake.model_dump_json()) == lake
    with pytest.raises(ValidationError, match="frozen"):
        lake.sources[0].slug = "other"


def test_a_relative_storage_starts_from_the_folder_of_the_file(tmp_path: Path) -> None:
    assert settings(config_folder=tmp_path).storage_uri == f"{tmp_path}/lake"
    assert settings(config_folder=tmp_path, storage="../x/").storage_uri == f"{tmp_path.parent}/x"
    assert settings(config_folder=tmp_path, storage="/abs").storage_uri == "/abs"


def test_a_source_is_found_by_slug_or_id() -> None:
    lake = settings(WEB, {"id": "ios01", "slug": "ios_prod"})
    assert lake.source("ios_prod") is lake.source("ios01") is lake.sources[1]
    reason = r"(?s)'ios_prd'.*did you mean 'ios_prod'\?.*known: web, ios_prod"
    with pytest.raises(UnknownSource, match=reason) as caught:
        lake.source("ios_prd")
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("naming", "entry", "skipped", "kept"),
    [
        ("native", "Order Completed", "track_order_completed", "order_completed"),
        ("native", "track_order_completed", "track_order_completed", "track_order"),
        ("native", "identify", "identify", "track_identify"),
        ("native", "Identify", "track_identify", "identify"),
        ("warehouse", "Order Completed", "order_completed", "track_order_completed"),
        ("warehouse", "identifies", "identifies", "track_identifies"),
        ("warehouse", "Pages", "track_pages", "pages"),
        ("warehouse", "track_pages", "track_pages", "pages"),
    ],
)
def test_events_to_skip_have_two_names(naming: str, entry: str, skipped: str, kept: str) -> None:
    source = settings({**WEB, "naming": naming, "skip_events": [entry]}).sources[0]
    assert source.skips(skipped)
    assert not source.skips(kept)


def test_a_source_has_a_prefix_and_a_start() -> None:
    source = settings({**WEB, "table_prefix": "shop", "start": "2026-10-01"}).sources[0]
    assert source.catalog_table("identify") == "shop_identify"
    assert source.start == date(2026, 10, 1)
    assert settings({**WEB, "start": date(2026, 10, 1)}).sources[0].start == date(2026, 10, 1)


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ({"id": "web01", "slug": "ios"}, "'web01' is taken by sources[0]"),
        ({"id": "ios01", "slug": "web"}, "'web' is taken by sources[0]"),
        ({"id": "ios01", "slug": "WEB", "database": "x"}, "'WEB' is taken by sources[0]"),
        ({"id": "web", "slug": "ios"}, "'web' is taken by sources[0]"),
        (
            {"id": "ios01", "slug": "my-ios", "database": "web"},
            "would write to the tables of source 'web' (web, without a prefix); "
            "set `table_prefix: my_ios` here",
        ),
        (
            {"id": "ios01", "slug": "ios", "database": "web", "table_prefix": "x"},
            "web.x_…); set `table_prefix: ios`",
        ),
    ],
)
def test_two_sources_may_not_share_names_or_tables(second: dict[str, str], message: str) -> None:
    first = {**WEB, "table_prefix": "x"} if "table_prefix" in second else WEB
    with pytest.raises(ValidationError) as caught:
        settings(first, second)
    assert message in str(caught.value)


def test_prefixes_keep_sources_of_one_database_apart() -> None:
    others = ({"id": f"{name}01", "slug": name, "table_prefix": name} for name in ("ios", "tv"))
    lake = settings(*({**source, "database": "shop"} for source in (WEB, *others)))
    assert {source.database for source in lake.sources} == {"shop"}


def test_glue_needs_s3_and_the_account_of_the_role() -> None:
    with pytest.raises(ValidationError, match=r"set `storage: s3://bucket\[/prefix\]` with it"):
        settings(catalog="glue")
    role = "arn:aws:iam::123456789012:role/lake"
    lake = settings(iam_role_arn=role, glue_catalog_id="123456789012")
    assert lake.sources[0].glue_catalog_id == "123456789012"
    with pytest.raises(ValidationError, match="allowed: 123456789012"):
        settings(iam_role_arn=role, glue_catalog_id="123456789013")


def load(folder: Path, alerts: str, of_source: str = "{}") -> Settings:
    (folder / "lake.yaml").write_text(
        f"workspace_id: W1\nstorage: ./lake\nalerts: {alerts}\n"
        f"sources:\n  - id: S1\n    slug: shop\n    alerts: {of_source}\n"
    )
    return load_settings(None, {}, folder)


def test_alerts_need_recipients_and_include_failures() -> None:
    assert not Alerts().has_recipients
    assert Alerts().sync_failures and Alerts().replay_failures
    for key, value in (
        ("email_to", "data@example.com"),
        ("sns_topic_arn", "arn:aws:sns:eu-west-1:123456789012:alerts"),
        ("webhook", "https://hooks.example.com/x"),
        ("webhook", "$HOOK"),
    ):
        assert Alerts.model_validate({key: value}).has_recipients


def test_a_source_may_have_other_recipients_and_switches(tmp_path: Path) -> None:
    top = "{email_to: data@example.com, smtp_host: mail.example.com, no_data_hours: 24}"
    own = "{email_to: [shop@example.com, ops@example.com], no_data_hours: 6}"
    settings = load(tmp_path, top, own)
    assert settings.alerts.email_to == ("data@example.com",)
    shop = settings.sources[0].alerts
    assert shop.email_to == ("shop@example.com", "ops@example.com")
    assert (shop.smtp_host, shop.no_data_hours) == ("mail.example.com", 6)
    assert not load(tmp_path, top, "{email_to: []}").sources[0].alerts.has_recipients


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("email_to: data", "seen 'data'; allowed: a plain e-mail address, such as data@example"),
        ("email_to: [a@b.c, 'A <a@b.c>']", "email_to[1]: seen 'A <a@b.c>'; allowed: a plain"),
        ("smtp_port: 99999", "seen '99999'; allowed: a port from 1 to 65535"),
        ("smtp_security: ssl", "seen 'ssl'; allowed: starttls | tls | none"),
        ("sns_topic_arn: alerts", "seen 'alerts'; allowed: arn:aws:sns:<region>:<account>:<topic>"),
        ("no_data_hours: 0", "seen '0'; allowed: a whole number of hours, 1 to 8760"),
        ("rejected_percent: 101", "seen '101'; allowed: a number from 0 to 100"),
        ("ui_url: dagster.example.com", "allowed: https://… (or http://…)"),
        ("sync_failure: true", "unknown setting; did you mean 'sync_failures'?"),
        ("smtp_password: own-secret", "a value that is not repeated here; allowed: $NAME, the env"),
        ("webhook: ftp://own-secret", "a value that is not repeated here; allowed: https://…"),
    ],
)
def test_errors_repeat_values_unless_secret(tmp_path: Path, given: str, expected: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, f"{{{given}}}")
    assert expected in str(caught.value)
    assert "own-secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("security", "port", "expected"),
    [("starttls", None, 587), ("tls", None, 465), ("none", None, 25), ("starttls", 2525, 2525)],
)
def test_the_port_follows_the_security(security: str, port: int | None, expected: int) -> None:
    given = {"smtp_security": security, "smtp_port": port}
    assert Alerts.model_validate(given).port == expected
    assert Alerts().port == 587


def test_a_secret_is_read_from_its_variable_and_a_missing_one_is_named() -> None:
    assert secret_of("webhook", "https://x/y", {}) == "https://x/y"
    assert secret_of("webhook", "$HOOK", {"HOOK": "https://x/y"}) == "https://x/y"
    with pytest.raises(InvalidSetting, match=r"`alerts\.webhook`: the environment variable HOOK "):
        secret_of("webhook", "$HOOK", {"HOOK": ""})


def test_remote_jobs_get_no_secrets(tmp_path: Path) -> None:
    settings = load(tmp_path, "{webhook: https://hooks.example.com/own-secret}")
    assert "own-secret" not in str(settings.for_jobs()) + repr(settings)
    assert Settings.model_validate(settings.for_jobs()).sources[0].slug == "shop"
