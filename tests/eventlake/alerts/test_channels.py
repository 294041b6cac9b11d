"""Every way, to a real server: what arrives, and what is said when nothing does."""

import os
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import pytest
import trustme

from eventlake.alerts.channels.base import NotSent
from eventlake.alerts.channels.email import Email
from eventlake.alerts.channels.sns import SnsTopic
from eventlake.alerts.channels.webhook import WebHook
from eventlake.alerts.state import Message
from eventlake.aws.access import AwsAccess
from eventlake.settings.alerts import Alerts
from tests.support.servers.alerts import PASSWORD, USER, Hook, MailBox, mail_server, subscribed
from tests.support.servers.aws import AwsServer

AT = datetime(2026, 10, 20, 4, 0, 7, tzinfo=UTC)
TEXT = "shop: sync failed\nError: Größe > 3 & <b>\nWhat to do: nothing."
MESSAGE = Message("S1-7", "shop", "sync_failures", "shop: sync failed", TEXT, AT, False, {"n": 3})


def email(box: MailBox, **given: object) -> Email:
    usual = {
        "email_to": ["data@example.com", "ops@example.com"],
        "email_from": "datalake@example.com",
        "smtp_host": "localhost",
        "smtp_port": box.port,
        "smtp_user": USER,
    }
    return Email(Alerts.model_validate({**usual, **given}), os.environ)


def test_a_mail_says_it_all_and_is_marked_as_made_by_a_program(mail_box: MailBox) -> None:
    assert email(mail_box).send(MESSAGE) == ""
    [mail] = mail_box.mails
    assert mail["Subject"] == "[datalake] shop: sync failed"
    assert (mail["From"], mail["To"]) == (
        "datalake@example.com",
        "data@example.com, ops@example.com",
    )
    assert mail["Message-ID"] == "<S1-7.20261020040007@example.com>"
    assert parsedate_to_datetime(mail["Date"]) == AT
    assert mail["Auto-Submitted"] == "auto-generated"
    assert mail.get_content().replace("\r\n", "\n") == TEXT + "\n"


def test_a_mail_goes_by_tls_from_the_first_byte_if_so_asked(
    authority: trustme.CA, trusted: None
) -> None:
    with mail_server(authority, tls="tls") as box:
        email(box, smtp_security="tls", smtp_user=None, email_from=None).send(MESSAGE)
        assert box.mails[0]["From"] == "data@example.com"


def test_some_recipients_may_be_refused_and_the_others_have_it(mail_box: MailBox) -> None:
    remark = email(mail_box, email_to=["data@example.com", "nobody@example.com"]).send(MESSAGE)
    assert remark == (
        "The mail server refused some recipients: nobody@example.com (550 no such user here)."
    )
    assert len(mail_box.mails) == 1


@pytest.mark.parametrize(
    ("given", "password", "told"),
    [
        ({}, "wrong", "the login was refused (535 5.7.8 Authentication credentials invalid)"),
        ({}, "", "the environment variable DATALAKE_SMTP_PASSWORD is not set"),
        ({"email_to": "nobody@example.com"}, PASSWORD, "all recipients were refused: nobody@"),
        ({"smtp_host": "127.0.0.1"}, PASSWORD, "its certificate is not trusted (IP address mism"),
        ({"smtp_security": "tls"}, PASSWORD, "no TLS (WRONG_VERSION_NUMBER). Correct `alerts.smt"),
        ({"smtp_security": "none"}, PASSWORD, "Correct `alerts.smtp_security`"),
        ({"smtp_port": 1}, PASSWORD, "Connection refused. Correct `alerts.smtp_host`"),
    ],
)
def test_a_mail_server_that_refuses_is_told_with_its_remedy(
    mail_box: MailBox,
    monkeypatch: pytest.MonkeyPatch,
    given: dict[str, object],
    password: str,
    told: str,
) -> None:
    monkeypatch.setenv("DATALAKE_SMTP_PASSWORD", password)
    channel = email(mail_box, **given)
    with pytest.raises(NotSent) as caught:
        channel.send(MESSAGE)
    assert told in str(caught.value)
    assert password not in str(caught.value) or not password
    assert mail_box.mails == []


def test_a_look_at_a_mail_server_sends_nothing(mail_box: MailBox) -> None:
    seen = email(mail_box).look()
    assert seen == (
        f"localhost:{mail_box.port} answers, STARTTLS, logged in as datalake; nothing was sent"
    )
    assert mail_box.mails == []


def test_a_hook_gets_text_as_slack_takes_it_and_the_facts(hook: Hook) -> None:
    WebHook("$DATALAKE_WEBHOOK", os.environ).send(MESSAGE)
    assert hook.posts == [
        {
            "text": ":rotating_light: *shop: sync failed*\n"
            "Error: Größe &gt; 3 &amp; &lt;b&gt;\nWhat to do: nothing.",
            "metadata": {
                "event_type": "datalake_alert",
                "event_payload": {
                    "id": "S1-7",
                    "source": "shop",
                    "kind": "sync_failures",
                    "over": False,
                    "title": "shop: sync failed",
                    "at": "2026-10-20T04:00:07+00:00",
                    "n": 3,
                },
            },
        }
    ]


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (403, "web hook at localhost answered 403 (invalid_token)"),
        (500, "web hook at localhost answered 500 (invalid_token)"),
        (302, "web hook at localhost answered 302"),
    ],
)
def test_a_hook_that_refuses_is_told_and_its_url_is_not(hook: Hook, status: int, told: str) -> None:
    hook.status = status
    channel = WebHook(hook.url, os.environ)
    with pytest.raises(NotSent) as caught:
        channel.send(MESSAGE)
    assert told in str(caught.value)
    assert "own-secret" not in f"{caught.value} {channel.address}"


def test_a_look_at_a_hook_posts_nothing(hook: Hook) -> None:
    assert "answers, TLS; nothing was posted" in WebHook(hook.url, os.environ).look()
    assert hook.posts == []


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("https://localhost:1/x", "web hook at localhost cannot be reached"),
        ("$NOT_SET", "the environment variable NOT_SET is not set"),
        ("$NO_URL", "The variable NO_URL of `alerts.webhook` holds no https://"),
    ],
)
def test_a_hook_that_is_not_there_is_told(url: str, told: str) -> None:
    channel = WebHook(url, {"NO_URL": "own-secret-of-the-hook"})
    for tried in (lambda: channel.send(MESSAGE), channel.look):
        with pytest.raises(NotSent, match=told) as caught:
            tried()
        assert "own-secret" not in str(caught.value)


def test_without_the_authority_nobody_is_trusted(
    hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", os.devnull)
    channel = WebHook(hook.url, os.environ)
    for tried in (lambda: channel.send(MESSAGE), channel.look):
        with pytest.raises(NotSent, match="certificate verify failed"):
            tried()


def test_a_topic_hands_on_what_it_gets(aws: AwsServer) -> None:
    topic, queue = subscribed(aws)
    channel = SnsTopic(topic, AwsAccess(region="us-east-1"))  # the topic's own region counts
    channel.send(MESSAGE)
    heard = aws.client("sqs").receive_message(QueueUrl=queue, MessageAttributeNames=["All"])
    [message] = heard["Messages"]
    assert message["Body"] == TEXT
    attributes = {n: v["StringValue"] for n, v in message["MessageAttributes"].items()}
    expected = {"id": "S1-7", "source": "shop", "kind": "sync_failures", "over": "false"}
    assert attributes == expected
    assert channel.look() == f"{topic} is there; nothing was sent"


def test_a_topic_that_is_not_there_is_told(aws: AwsServer) -> None:
    channel = SnsTopic("arn:aws:sns:eu-west-1:123456789012:missing", AwsAccess())
    for tried in (lambda: channel.send(MESSAGE), channel.look):
        with pytest.raises(NotSent, match=r"SNS: topic arn:.*:missing does not exist"):
            tried()
