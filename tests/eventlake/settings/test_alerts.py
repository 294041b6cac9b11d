"""The settings of alerts: recipients, switches, and that no secret is repeated."""

from pathlib import Path
from typing import Any

import pytest

from eventlake.rules.errors import InvalidSetting, SettingsError
from eventlake.settings.alerts import Alerts, secret_of
from eventlake.settings.file import load_settings
from eventlake.settings.models import Settings


def load(folder: Path, alerts: str, of_source: str = "{}") -> Settings:
    (folder / "lake.yaml").write_text(
        f"workspace_id: W1\nstorage: ./lake\nalerts: {alerts}\n"
        f"sources:\n  - id: S1\n    slug: shop\n    alerts: {of_source}\n"
    )
    return load_settings(None, {}, folder)


def test_without_recipients_alerts_are_off_and_failures_are_told_where_there_are_some() -> None:
    assert not Alerts().has_recipients
    assert Alerts().sync_failures and Alerts().replay_failures
    recipients: list[dict[str, Any]] = [
        {"email_to": "data@example.com"},
        {"sns_topic_arn": "arn:aws:sns:eu-west-1:123456789012:alerts"},
        {"webhook": "https://hooks.example.com/x"},
        {"webhook": "$HOOK"},
    ]
    for given in recipients:
        assert Alerts.model_validate(given).has_recipients


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
    ("given", "told"),
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
def test_a_wrong_value_is_told_with_what_is_allowed_unless_it_is_secret(
    tmp_path: Path, given: str, told: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, f"{{{given}}}")
    assert told in str(caught.value)
    assert "own-secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "port"),
    [
        ({}, 587),
        ({"smtp_security": "tls"}, 465),
        ({"smtp_security": "none"}, 25),
        ({"smtp_port": 2525}, 2525),
    ],
)
def test_the_port_follows_the_security_unless_it_is_set(given: dict[str, Any], port: int) -> None:
    assert Alerts.model_validate(given).port == port


def test_a_secret_is_what_its_variable_holds_and_a_missing_one_is_named() -> None:
    assert secret_of("webhook", "https://x/y", {}) == "https://x/y"
    assert secret_of("webhook", "$HOOK", {"HOOK": "https://x/y"}) == "https://x/y"
    with pytest.raises(InvalidSetting, match=r"`alerts\.webhook`: the environment variable HOOK "):
        secret_of("webhook", "$HOOK", {"HOOK": ""})


def test_jobs_elsewhere_are_not_given_what_may_be_secret(tmp_path: Path) -> None:
    settings = load(tmp_path, "{webhook: https://hooks.example.com/own-secret}")
    assert "own-secret" not in str(settings.for_jobs()) + repr(settings)
    assert Settings.model_validate(settings.for_jobs()).sources[0].slug == "shop"
