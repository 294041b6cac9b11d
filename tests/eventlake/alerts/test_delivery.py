"""Evaluating a lake and delivering its alerts by mail, webhook and SNS."""

import os
import threading
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import trustme
from hypothesis import given, settings
from hypothesis import strategies as st

from eventlake.alerts import delivery
from eventlake.alerts.channels import Channel, NotSent
from eventlake.alerts.channels.email import Email
from eventlake.alerts.channels.sns import SnsTopic
from eventlake.alerts.channels.webhook import WebHook
from eventlake.alerts.delivery import CLAIM
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
from tests.support.alerts.lakes import BEGIN, REFUSED, FakeChannel, WatchedLake
from tests.support.servers.alerts import PASSWORD, USER, Hook, MailBox, mail_server, subscribed
from tests.support.servers.aws import AwsServer

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


def test_a_way_that_refuses_is_tried_again_and_the_others_are_not(
    watched: WatchedLake, ways: tuple[FakeChannel, FakeChannel]
) -> None:
    mail, hook = ways
    hook.down = True
    watched.run(BEGIN + HOUR, REFUSED)
    told = watched.look(BEGIN + HOUR, {})
    assert told == [
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


def test_a_way_that_refuses_for_days_is_given_up_and_that_is_kept(
    watched: WatchedLake, ways: tuple[FakeChannel, FakeChannel]
) -> None:
    ways[0].down = True
    watched.run(BEGIN + HOUR, REFUSED)
    now = BEGIN + HOUR
    while now < BEGIN + GIVE_UP + 3 * HOUR:
        watched.look(now, {})
        now += HOUR
    [entry] = watched.state.notifications
    assert (entry.due, entry.lost) == ({}, {"email": "out of order"})
    ways[0].down = False
    assert watched.look(now, {}) == []


def test_messages_of_a_way_that_was_down_come_in_their_order(
    watched: WatchedLake, ways: tuple[FakeChannel, FakeChannel]
) -> None:
    ways[0].down = True
    for hour in range(1, 6):
        watched.run(BEGIN + hour * HOUR, REFUSED)
        watched.look(BEGIN + hour * HOUR, {})
    watched.run(BEGIN + 6 * HOUR)
    ways[0].down = False
    watched.look(BEGIN + 6 * HOUR, {})
    expected = ["sync failed", "5 syncs failed in a row", "sync recovered after 5 failures"]
    assert ways[0].titles == ways[1].titles == expected


def test_who_dies_after_sending_leaves_a_claim_and_the_message_comes_again_when_it_is_over(
    watched: WatchedLake, ways: tuple[FakeChannel, FakeChannel]
) -> None:
    ways[0].dies = True
    watched.run(BEGIN + HOUR, REFUSED)
    with pytest.raises(KeyboardInterrupt):
        watched.look(BEGIN + HOUR, {})
    ways[0].dies = False
    watched.look(BEGIN + HOUR + CLAIM - MINUTE, {})
    assert (ways[0].titles, ways[1].titles) == (["sync failed"], [])
    watched.look(BEGIN + HOUR + CLAIM, {})
    assert (ways[0].titles, ways[1].titles) == (["sync failed"] * 2, ["sync failed"])
    assert len({message.id for message in ways[0].sent}) == 1


@pytest.mark.parametrize("on_s3", [False, True], ids=["folder", "s3"])
def test_of_several_who_look_at_once_one_sends(
    tmp_path: Path, aws: AwsServer, ways: tuple[FakeChannel, FakeChannel], on_s3: bool
) -> None:
    storage = f"s3://{aws.bucket()}" if on_s3 else ""
    lake = WatchedLake(tmp_path, storage, email_to="data@example.com")
    lake.run(BEGIN)
    lake.look(BEGIN, {})
    lake.run(BEGIN + HOUR, REFUSED)
    start = threading.Barrier(4)

    def look() -> None:
        start.wait()
        lake.look(BEGIN + HOUR, {})

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (ways[0].titles, ways[1].titles) == (["sync failed"], ["sync failed"])


@settings(max_examples=15)
@given(st.text("FFFKfk", max_size=25), st.lists(st.booleans(), min_size=25, max_size=25))
def test_whatever_ways_are_down_each_gets_every_message_once_and_in_order(
    history: str, down: list[bool]
) -> None:
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
    assert flaky.titles == steady.titles == due(history)


def due(history: str) -> list[str]:
    told, rows = list[str](), {"sync": 0, "replay": 0}
    for entry in history:
        work = "replay" if entry.islower() else "sync"
        if entry in "Ff":
            rows[work] += 1
            if rows[work] == 1:
                told.append(f"{work} failed")
            elif rows[work] in (5, 20):
                told.append(f"{rows[work]} {work}s failed in a row")
        elif rows[work]:
            told.append(f"{work} recovered after {rows[work]} failure" + "s" * (rows[work] > 1))
            rows[work] = 0
    return told


def test_25_failures_in_a_row_are_three_messages_by_every_way_and_recovery_is_one(
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

    expected = [
        "shop: sync failed",
        "shop: 5 syncs failed in a row",
        "shop: 20 syncs failed in a row",
        "shop: sync recovered after 25 failures",
    ]
    assert mail_box.subjects == [f"[datalake] {title}" for title in expected]
    assert hook.titles == expected
    sqs = aws.client("sqs")
    heard = [sqs.receive_message(QueueUrl=queue).get("Messages", []) for _ in range(6)]
    assert sorted(m["Body"].splitlines()[0] for many in heard for m in many) == sorted(expected)
    assert mail_box.mails[1].get_content().replace("\r\n", "\n") == (
        "shop: 5 syncs failed in a row\n"
        "Since: 2026-10-20 01:57 UTC, 8 h 4 min\n"
        "Last sync that finished: 2026-10-20 00:00 UTC\n"
        "Error: Segment.InsufficientPermissions: S3 bucket b: s3:PutObject was refused.\n"
        "What to do: Grant what the error names, then try `datalake check`. The next sync retries "
        "automatically and continues after what is published.\n"
        "Next message: at the 20th failure in a row and when it recovers.\n"
        "Run: https://dagster.example.com/runs/d4\n"
    )
    payload = hook.posts[2]["metadata"]["event_payload"]
    assert (payload["failures"], payload["error_code"]) == (20, "Segment.InsufficientPermissions")


def test_a_run_that_went_on_for_days_is_counted_when_it_ends(
    watched: WatchedLake, ways: tuple[FakeChannel, FakeChannel]
) -> None:
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
    assert ways[0].titles == ["replay failed"]


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
    ],
)
def test_what_dagster_knows_of_a_failed_run_counts(
    watched: WatchedLake,
    ways: tuple[FakeChannel, FakeChannel],
    failure: object,
    statuses: list[RunStatus | None],
    expected: list[str],
) -> None:
    watched.run(BEGIN + HOUR, failure, dagster_run_id="d1")  # type: ignore[arg-type]
    for number, (status, title) in enumerate(zip(statuses, expected, strict=True)):
        watched.look(BEGIN + HOUR + number * MINUTE, {}, {"d1": status}.get)
        assert ways[0].titles == [title] * bool(title)


def test_dagster_that_never_hears_the_end_of_a_run_is_not_waited_for(
    watched: WatchedLake, ways: tuple[FakeChannel, FakeChannel]
) -> None:
    watched.run(BEGIN + HOUR, REFUSED, dagster_run_id="d1")
    watched.look(BEGIN + HOUR, {}, lambda id: RUNNING)
    watched.look(BEGIN + HOUR + 10 * MINUTE, {}, lambda id: RUNNING)
    assert ways[0].titles == ["sync failed"]


def test_a_run_that_died_and_its_retry_are_one_failure(
    watched: WatchedLake, ways: tuple[FakeChannel, FakeChannel]
) -> None:
    known = {"d1": RunStatus("d1", failed=True, will_retry=True), "d2": FAILED}
    watched.run(BEGIN + HOUR, INTERRUPTED, dagster_run_id="d1")
    watched.run(BEGIN + HOUR + MINUTE, INTERRUPTED, dagster_run_id="d2")
    watched.look(BEGIN + 2 * HOUR, {}, known.get)
    assert (ways[0].titles, watched.state.syncs.failures) == (["sync failed"], 1)


def test_without_recipients_nothing_is_looked_at_or_written(tmp_path: Path) -> None:
    lake = WatchedLake(tmp_path)
    lake.run(BEGIN, REFUSED)
    assert lake.look(BEGIN, {}) == []
    assert not lake.lake.storage.exists("segment-data/_state/sources/S1/alerts.json")


def test_nothing_new_is_nothing_written(
    watched: WatchedLake, ways: tuple[FakeChannel, FakeChannel]
) -> None:
    path = "segment-data/_state/sources/S1/alerts.json"
    [before] = watched.lake.storage.files(path.rsplit("/", 1)[0], recursive=False)
    watched.look(BEGIN + MINUTE, {})
    [after] = watched.lake.storage.files(path.rsplit("/", 1)[0], recursive=False)
    assert before == after


def test_a_clock_that_is_set_back_hides_nothing(
    watched: WatchedLake, ways: tuple[FakeChannel, FakeChannel]
) -> None:
    watched.look(BEGIN + timedelta(days=365), {})  # somebody's clock
    watched.run(BEGIN + HOUR, REFUSED)
    for minutes in range(3):
        watched.look(BEGIN + HOUR + minutes * MINUTE, {})
    assert ways[0].titles == ["sync failed"]


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
    seen = email(mail_box).check()
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
    assert "answers, TLS; nothing was posted" in WebHook(hook.url, os.environ).check()
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
    for tried in (lambda: channel.send(MESSAGE), channel.check):
        with pytest.raises(NotSent, match=told) as caught:
            tried()
        assert "own-secret" not in str(caught.value)


def test_without_the_authority_nobody_is_trusted(
    hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", os.devnull)
    channel = WebHook(hook.url, os.environ)
    for tried in (lambda: channel.send(MESSAGE), channel.check):
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
    assert channel.check() == f"{topic} exists; nothing was sent"


def test_a_topic_that_is_not_there_is_told(aws: AwsServer) -> None:
    channel = SnsTopic("arn:aws:sns:eu-west-1:123456789012:missing", AwsAccess())
    for tried in (lambda: channel.send(MESSAGE), channel.check):
        with pytest.raises(NotSent, match=r"SNS: topic arn:.*:missing does not exist"):
            tried()
