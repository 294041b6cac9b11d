"""`datalake alerts`, and what `datalake check` finds of them."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from eventlake.alerts.delivery import Evaluation
from eventlake.rules.counts import UnitReport
from eventlake.runs.open_runs import close_run
from eventlake.state.report import Failure, RunFacts
from tests.support.lakes.jobs import SampleLake
from tests.support.servers.alerts import USER, Hook, MailBox
from tests.support.terminal import datalake


@pytest.fixture
def lake(unsynced: SampleLake, mail_box: MailBox, hook: Hook) -> SampleLake:
    """A lake that sends alerts of both sources to two recipients."""
    with (unsynced.folder / "lake.yaml").open("a") as file:
        file.write(
            "alerts:\n"
            "  email_to: data@example.com\n"
            f"  smtp_port: {mail_box.port}\n"
            f"  smtp_user: {USER}\n"
            "  webhook: $DATALAKE_WEBHOOK\n"
        )
    return unsynced


def fail_syncs(lake: SampleLake, times: int) -> datetime:
    """A success, then failures an hour apart, each evaluated; the time of the first failure."""
    opened, at = lake.lake, datetime.now(UTC) - timedelta(hours=times + 1)
    source = opened.settings.source("ios_prod")
    for number in range(times + 1):
        run = RunFacts("W1", source.id, source.database, f"R{number}", at, "")
        failure = Failure("Segment.Internal", "disk full") if number else None
        close_run(opened.storage, opened.catalog, run, UnitReport(), at, failure)
        Evaluation(opened, at, {"DATALAKE_WEBHOOK": "https://localhost:1/"}).evaluate(source)
        at += timedelta(hours=1)
    return at - times * timedelta(hours=1)


@pytest.mark.usefixtures("lake")
def test_a_test_message_goes_to_every_recipient_once(mail_box: MailBox, hook: Hook) -> None:
    result = datalake("alerts", "--test")
    assert [line[:9] for line in result.out.splitlines()] == ["✓ email t", "✓ webhook"]
    assert mail_box.subjects == ["[datalake] web_shop: test of alerts by email"]
    assert hook.titles == ["web_shop: test of alerts by webhook"]
    assert "own-secret" not in result.out + result.err


@pytest.mark.usefixtures("lake")
def test_a_channel_that_refuses_the_test_is_reported_and_fails_the_command(hook: Hook) -> None:
    hook.status = 404
    sent = datalake("alerts", "--test", "--json", code=1).json
    taken = {one["channel"]: (one["accepted"], one["message"]) for one in sent}
    assert taken["email"] == (True, "")
    assert taken["webhook"][0] is False
    assert "answered 404 (invalid_token)" in taken["webhook"][1]


def test_without_recipients_a_test_is_refused(unsynced: SampleLake) -> None:
    result = datalake("alerts", "--test", code=2)
    assert "Name some under `alerts` in lake.yaml" in result.err
    result = datalake("alerts")
    assert result.out == "No problem is open.\n"
    assert "no alerts for web_shop, ios_prod" in result.err


def test_open_problems_and_messages_are_shown_with_their_state(lake: SampleLake) -> None:
    since = fail_syncs(lake, 5)
    result = datalake("alerts")
    assert f"ios_prod: 5 syncs failed in a row  {since:%Y-%m-%d %H:%M}" in result.out
    assert "email (waits), webhook (waits)" in result.out
    assert "warning: webhook did not accept 'ios_prod: sync failed' yet: web hook" in result.err

    [web, ios] = datalake("alerts", "--json").json
    assert (web["source"], web["open"], web["messages"]) == ("web_shop", [], [])
    assert [trouble["kind"] for trouble in ios["open"]] == ["sync_failures"]
    assert [message["title"] for message in ios["messages"]] == [
        "ios_prod: 5 syncs failed in a row",
        "ios_prod: sync failed",
    ]
    assert ios["messages"][1]["waiting"]["webhook"]["tries"] == 5


@pytest.mark.usefixtures("lake")
def test_check_connects_to_every_channel_without_sending(
    mail_box: MailBox, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = datalake("check")
    assert "answers, STARTTLS, logged in as datalake; nothing was sent" in result.out
    assert "answers, TLS; nothing was posted" in result.out
    assert (mail_box.mails, hook.posts) == ([], [])

    monkeypatch.delenv("DATALAKE_WEBHOOK")
    result = datalake("check", code=1)
    assert re.search("alerts by webhook +Alerts would not come through:", result.out)
    assert "the environment variable DATALAKE_WEBHOOK is not set" in result.out
