"""Evaluating a lake and delivering its alerts by mail, webhook and SNS."""

import json
import os
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import trustme
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eventlake.alerts import delivery
from eventlake.alerts.channels import Channel, NotSent
from eventlake.alerts.channels.email import Email
from eventlake.alerts.channels.sns import SnsTopic
from eventlake.alerts.channels.webhook import WebHook
from eventlake.alerts.run_status import RunStatus
from eventlake.alerts.state import GIVE_UP, Message
from eventlake.aws.access import AwsAccess
from eventlake.runs.dead_runs import INTERRUPTED
from eventlake.runs.failures import CANCELLED
from eventlake.runs.open_runs import OpenRun
from eventlake.settings.alerts import Alerts
from eventlake.state.lease import myself
from eventlake.state.report import RunFacts
from eventlake.storage.documents import encode
from tests.support.alerts.lakes import (
    BEGIN,
    HOUR,
    REFUSED,
    Channels,
    FakeChannel,
    WatchedLake,
    due,
    runs,
)
from tests.support.servers.alerts import PASSWORD, USER, Hook, MailBox, mail_server, subscribed
from tests.support.servers.aws import AwsServer

MINUTE = timedelta(minutes=1)
ALERTS = "segment-data/_state/sources/S1/alerts.json"


def test_a_failed_channel_is_retried(watched: WatchedLake, channels: Channels) -> None:
    mail, hook = channels
    hook.down = True
    watched.run(BEGIN + HOUR, REFUSED)
    assert watched.look(BEGIN + HOUR, {}) == [
        "shop, by email: shop: sync failed.",
        "shop, by webhook: not sent, retried at the next evaluation: out of order",
    ]
    [entry] = watched.state.notifications
    assert (entry.due["webhook"].tries, entry.due["webhook"].error) == (1, "out of order")
    watched.look(BEGIN + HOUR + MINUTE, {})
    hook.down = False
    watched.look(BEGIN + HOUR + 2 * MINUTE, {})
    watched.look(BEGIN + HOUR + 3 * MINUTE, {})
    assert (mail.titles, hook.titles) == (["sync failed"], ["sync failed"])


def test_delivery_gives_up_in_time(watched: WatchedLake, channels: Channels) -> None:
    channels[0].down = True
    watched.run(BEGIN + HOUR, REFUSED)
    now = BEGIN + HOUR
    while now < BEGIN + GIVE_UP + 3 * HOUR:
        watched.look(now, {})
        now += HOUR
    [entry] = watched.state.notifications
    assert (entry.due, entry.lost) == ({}, {"email": "out of order"})
    channels[0].down = False
    assert watched.look(now, {}) == []


def test_a_crash_repeats_the_message(watched: WatchedLake, channels: Channels) -> None:
    """Under the same id, since the sender died before it recorded the delivery."""
    channels[0].dies = True
    watched.run(BEGIN + HOUR, REFUSED)
    with pytest.raises(KeyboardInterrupt):
        watched.look(BEGIN + HOUR, {})
    channels[0].dies = False
    watched.look(BEGIN + HOUR + MINUTE, {})
    watched.look(BEGIN + HOUR + 2 * MINUTE, {})
    assert (channels[0].titles, channels[1].titles) == (["sync failed"] * 2, ["sync failed"])
    assert len({message.id for message in channels[0].sent}) == 1


OLD_STATE = {
    "format_version": 2,
    "looked": "2026-10-20",
    "seen": {"R1": "2026-10-20", "R2": "2026-10-20"},
    "syncs": {"failures": 1, "told": 1, "since": "2026-10-20T01:00:00Z", "works": ["R2"]},
    "silence": {"since": None},
    "letters": [
        {
            "message": {
                "id": "S1-7",
                "source": "shop",
                "kind": "sync_failures",
                "title": "shop: sync failed",
                "text": "shop: sync failed",
                "at": "2026-10-20T01:00:00Z",
            },
            "due": {"email": {"tries": 1, "error": "down", "claimed_by": "a1"}},
        }
    ],
    "number": 7,
}


def test_messages_survive_an_upgrade(watched: WatchedLake, channels: Channels) -> None:
    watched.run(BEGIN + HOUR, REFUSED)
    watched.run(BEGIN + 2 * HOUR, REFUSED)
    watched.lake.storage.write(ALERTS, json.dumps(OLD_STATE).encode())
    watched.look(BEGIN + 2 * HOUR, {})
    assert [message.id for message in channels[0].sent] == ["S1-7", "S1-8"]
    assert channels[0].titles == ["sync failed", "2 syncs failed in a row"]


@settings(max_examples=15)
@given(st.text("FFFKfk", max_size=25), st.lists(st.booleans(), min_size=25, max_size=25))
@example("FFFFFK", [True] * 25)
def test_each_channel_gets_each_message_once_in_order(history: str, down: list[bool]) -> None:
    flaky, steady = FakeChannel("a"), FakeChannel("b")
    named: dict[str, Channel] = {"email": flaky, "webhook": steady}
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as root:
        patch.setattr(delivery, "channels_of", lambda source, environ: named)
        lake, now = WatchedLake(root, email_to="data@example.com"), BEGIN
        lake.look(now, {})
        for entry, flaky.down in zip(history, down, strict=False):
            now += HOUR
            lake.run(now, REFUSED if entry in "Ff" else None, replay=entry.islower())
            lake.look(now, {})
        flaky.down = False
        lake.look(now, {})
    assert flaky.titles == steady.titles == due(runs(history))


def test_25_failures_and_a_recovery_are_four_messages_by_every_channel(
    tmp_path: Path, aws: AwsServer, mail_box: MailBox, hook: Hook
) -> None:
    topic, queue = subscribed(aws)
    lake = WatchedLake(
        tmp_path,
        email_to=["data@example.com", "ops@example.com"],
        email_from="datalake@example.com",
        smtp_port=mail_box.port,
        smtp_user=USER,
        sns_topic_arn=topic,
        webhook="$DATALAKE_WEBHOOK",
        ui_url="https://dagster.example.com/",
        console_url="https://dagster.example.com/console",
    )
    now = BEGIN
    lake.run(now)
    assert lake.look(now, os.environ) == []
    for number in range(25):
        now += 2 * HOUR
        lake.run(now, REFUSED, dagster_run_id=f"d{number}")
        lake.look(now + MINUTE, os.environ)
        assert lake.look(now + 2 * MINUTE, os.environ) == []
    lake.run(now + 2 * HOUR, rows=10)
    lake.look(now + 2 * HOUR, os.environ)

    failed = ("sync failed", "5 syncs failed in a row", "20 syncs failed in a row")
    expected = [f"shop: {title}" for title in (*failed, "sync recovered after 25 failures")]
    assert mail_box.subjects == [f"[datalake] {title}" for title in expected]
    assert hook.titles == expected
    sqs = aws.client("sqs")
    pages = [sqs.receive_message(QueueUrl=queue).get("Messages", []) for _ in range(6)]
    assert sorted(m["Body"].splitlines()[0] for page in pages for m in page) == sorted(expected)
    assert mail_box.mails[1].get_content().replace("\r\n", "\n") == (
        "shop: 5 syncs failed in a row\n"
        "Since: 2026-10-20 01:57 UTC, 8 h 4 min\n"
        "Last sync that finished: 2026-10-20 00:00 UTC\n"
        "Error: Segment.InsufficientPermissions: S3 bucket b: s3:PutObject was refused.\n"
        "What to do: Grant what the error names, then try `datalake check`. The next sync retries "
        "automatically and continues after what is published.\n"
        "Next message: at the 20th failure in a row and when it recovers.\n"
        "Run: https://dagster.example.com/runs/d4\n"
        "Page: https://dagster.example.com/console/history/R6\n"
    )
    payload = hook.posts[2]["metadata"]["event_payload"]
    assert (payload["failures"], payload["error_code"]) == (20, "Segment.InsufficientPermissions")


def test_long_runs_count_at_their_end(watched: WatchedLake, channels: Channels) -> None:
    started = BEGIN + HOUR
    facts = RunFacts("W1", "S1", "shop", "R2", started, "", replay=True)
    path = f"segment-data/_state/sources/S1/runs/{facts.run_id}.json"
    watched.lake.storage.write(path, encode(OpenRun(facts, 0, myself())))
    for day in range(6):
        watched.look(BEGIN + timedelta(days=day, hours=2), {})
    end = BEGIN + timedelta(days=6)
    assert watched.run(end, REFUSED, replay=True, started=started) == "R2"
    watched.look(end, {})
    watched.look(end + timedelta(days=1), {})
    assert channels[0].titles == ["replay failed"]


RUNNING = RunStatus("d1", over=False)
FAILED = RunStatus("d1", failed=True)


@pytest.mark.parametrize(
    ("failure", "statuses", "expected"),
    [
        (REFUSED, [None], ["sync failed"]),
        (REFUSED, [FAILED], ["sync failed"]),
        (REFUSED, [RUNNING, FAILED], ["", "sync failed"]),
        (INTERRUPTED, [RUNNING, RunStatus("d1", failed=True, will_retry=True)], ["", ""]),
        (CANCELLED, [None], [""]),
        (CANCELLED, [RunStatus("d1")], [""]),
        (CANCELLED, [RUNNING, FAILED], ["", "sync failed"]),  # by Dagster: it took too long
        (INTERRUPTED, [RunStatus("d1")], [""]),  # it died while a person cancelled it
        (REFUSED, [RUNNING] * 11, [""] * 10 + ["sync failed"]),  # Dagster missed its end
    ],
)
def test_the_run_status_of_dagster_decides(
    watched: WatchedLake,
    channels: Channels,
    failure: object,
    statuses: list[RunStatus | None],
    expected: list[str],
) -> None:
    watched.run(BEGIN + HOUR, failure, dagster_run_id="d1")  # type: ignore[arg-type]
    for number, (status, title) in enumerate(zip(statuses, expected, strict=True)):
        watched.look(BEGIN + HOUR + number * MINUTE, {}, {"d1": status}.get)
        assert channels[0].titles == [title] * bool(title)


def test_a_retry_is_the_same_failure(watched: WatchedLake, channels: Channels) -> None:
    known = {"d1": RunStatus("d1", failed=True, will_retry=True), "d2": FAILED}
    watched.run(BEGIN + HOUR, INTERRUPTED, dagster_run_id="d1")
    watched.run(BEGIN + HOUR + MINUTE, INTERRUPTED, dagster_run_id="d2")
    watched.look(BEGIN + 2 * HOUR, {}, known.get)
    assert channels[0].titles == ["sync failed"]


def test_without_recipients_nothing_is_evaluated_or_written(tmp_path: Path) -> None:
    lake = WatchedLake(tmp_path)
    lake.run(BEGIN, REFUSED)
    assert lake.look(BEGIN, {}) == []
    assert not lake.lake.storage.exists(ALERTS)


def test_nothing_new_is_nothing_written(watched: WatchedLake) -> None:
    [before] = watched.lake.storage.files(ALERTS.rsplit("/", 1)[0], recursive=False)
    watched.look(BEGIN + MINUTE, {})
    assert watched.lake.storage.files(ALERTS.rsplit("/", 1)[0], recursive=False) == [before]


def test_a_clock_may_be_set_back(watched: WatchedLake, channels: Channels) -> None:
    watched.look(BEGIN + timedelta(days=365), {})
    watched.run(BEGIN + HOUR, REFUSED)
    for minutes in range(3):
        watched.look(BEGIN + HOUR + minutes * MINUTE, {})
    assert channels[0].titles == ["sync failed"]


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


def test_a_check_sends_nothing_and_a_mail_has_all_its_headers(mail_box: MailBox) -> None:
    assert email(mail_box).check() == (
        f"localhost:{mail_box.port} answers, STARTTLS, logged in as datalake; nothing was sent"
    )
    assert mail_box.mails == []
    assert email(mail_box).send(MESSAGE) == ""
    [mail] = mail_box.mails
    assert mail["Subject"] == "[datalake] shop: sync failed"
    assert mail["From"] == "datalake@example.com"
    assert mail["To"] == "data@example.com, ops@example.com"
    assert mail["Message-ID"] == "<S1-7.20261020040007@example.com>"
    assert parsedate_to_datetime(mail["Date"]) == AT
    assert mail["Auto-Submitted"] == "auto-generated"
    assert mail.get_content().replace("\r\n", "\n") == TEXT + "\n"


def test_a_mail_may_go_by_tls_from_the_first_byte(authority: trustme.CA, trusted: None) -> None:
    with mail_server(authority, tls="tls") as box:
        email(box, smtp_security="tls", smtp_user=None, email_from=None).send(MESSAGE)
        assert box.mails[0]["From"] == "data@example.com"


def test_some_recipients_may_be_refused_and_the_others_have_it(mail_box: MailBox) -> None:
    remark = email(mail_box, email_to=["data@example.com", "nobody@example.com"]).send(MESSAGE)
    refused = "nobody@example.com (550 no such user here)"
    assert remark == f"The mail server refused some recipients: {refused}."
    assert len(mail_box.mails) == 1


@pytest.mark.parametrize(
    ("given", "password", "reason"),
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
def test_a_refusal_of_the_mail_server_has_its_remedy(
    mail_box: MailBox,
    monkeypatch: pytest.MonkeyPatch,
    given: dict[str, object],
    password: str,
    reason: str,
) -> None:
    monkeypatch.setenv("DATALAKE_SMTP_PASSWORD", password)
    channel = email(mail_box, **given)
    with pytest.raises(NotSent) as caught:
        channel.send(MESSAGE)
    assert reason in str(caught.value)
    assert password not in str(caught.value) or not password
    assert mail_box.mails == []


def test_a_check_posts_nothing_and_a_post_has_text_for_slack_and_facts(hook: Hook) -> None:
    channel = WebHook("$DATALAKE_WEBHOOK", os.environ)
    assert "answers, TLS; nothing was posted" in channel.check()
    assert hook.posts == []
    channel.send(MESSAGE)
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
    ("status", "reason"),
    [
        (403, "web hook at localhost answered 403 (invalid_token)"),
        (500, "web hook at localhost answered 500 (invalid_token)"),
        (302, "web hook at localhost answered 302"),
    ],
)
def test_a_refusal_of_the_hook_hides_its_url(hook: Hook, status: int, reason: str) -> None:
    hook.status = status
    channel = WebHook(hook.url, os.environ)
    with pytest.raises(NotSent) as caught:
        channel.send(MESSAGE)
    assert reason in str(caught.value)
    assert "own-secret" not in f"{caught.value} {channel.address}"


ENVIRON = {"NO_URL": "own-secret-of-the-hook"}
MISSING = SnsTopic("arn:aws:sns:eu-west-1:123456789012:missing", AwsAccess())


@pytest.mark.parametrize(
    ("channel", "reason"),
    [
        (WebHook("https://localhost:1/x", ENVIRON), "web hook at localhost cannot be reached"),
        (WebHook("$NOT_SET", ENVIRON), "the environment variable NOT_SET is not set"),
        (WebHook("$NO_URL", ENVIRON), "The variable NO_URL of `alerts.webhook` holds no https://"),
        (MISSING, r"SNS: topic arn:.*:missing does not exist"),
    ],
)
def test_a_missing_receiver_is_reported(aws: AwsServer, channel: Channel, reason: str) -> None:
    for attempt in (lambda: channel.send(MESSAGE), channel.check):
        with pytest.raises(NotSent, match=reason) as caught:
            attempt()
        assert "own-secret" not in str(caught.value)


def test_only_known_authorities_are_trusted(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", os.devnull)
    channel = WebHook(hook.url, os.environ)
    for attempt in (lambda: channel.send(MESSAGE), channel.check):
        with pytest.raises(NotSent, match="certificate verify failed"):
            attempt()


def test_a_topic_receives_the_text_and_its_attributes(aws: AwsServer) -> None:
    topic, queue = subscribed(aws)
    channel = SnsTopic(topic, AwsAccess(region="us-east-1"))  # the topic's own region counts
    channel.send(MESSAGE)
    received = aws.client("sqs").receive_message(QueueUrl=queue, MessageAttributeNames=["All"])
    [message] = received["Messages"]
    assert message["Body"] == TEXT
    attributes = {n: v["StringValue"] for n, v in message["MessageAttributes"].items()}
    expected = {"id": "S1-7", "source": "shop", "kind": "sync_failures", "over": "false"}
    assert attributes == expected
    assert channel.check() == f"{topic} exists; nothing was sent"
