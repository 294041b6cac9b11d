"""`datalake alerts`, and what `datalake check` says of them."""

import json
import re
from datetime import UTC, datetime, timedelta

import pytest

from eventlake.alerts.delivery import Evaluation
from eventlake.rules.counts import UnitReport
from eventlake.runs.open_runs import close_run
from eventlake.state.report import Failure, RunFacts
from tests.support.lakes.jobs import SampleLake
from tests.support.servers.alerts import USER, Hook, MailBox
from tests.support.terminal import Terminal


@pytest.fixture
def told(unsynced: SampleLake, mail_box: MailBox, hook: Hook) -> SampleLake:
    """A lake with two ways for both sources."""
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
    """So many failures in the last hours, and a look after the first success and each of them."""
    opened, at = lake.lake, datetime.now(UTC) - timedelta(hours=times + 1)
    source = opened.settings.source("ios_prod")
    for number in range(times + 1):
        run = RunFacts("W1", source.id, source.database, f"R{number}", at, "")
        failure = Failure("Segment.Internal", "disk full") if number else None
        close_run(opened.storage, opened.catalog, run, UnitReport(), at, failure)
        Evaluation(opened, at, {"DATALAKE_WEBHOOK": "https://localhost:1/"}).evaluate(source)
        at += timedelta(hours=1)
    return at - times * timedelta(hours=1)


def test_a_test_message_goes_to_every_recipient_once(
    terminal: Terminal, told: SampleLake, mail_box: MailBox, hook: Hook
) -> None:
    said = terminal.run("alerts", "--test")
    assert said.code == 0
    assert [line[:9] for line in said.out.splitlines()] == ["✓ email t", "✓ webhook"]
    assert mail_box.subjects == ["[datalake] web_shop: test of alerts by email"]
    assert hook.titles == ["web_shop: test of alerts by webhook"]
    assert "own-secret" not in said.out + said.err


def test_a_way_that_refuses_the_test_is_told_and_the_exit_code_says_so(
    terminal: Terminal, told: SampleLake, mail_box: MailBox, hook: Hook
) -> None:
    hook.status = 404
    said = terminal.run("alerts", "--test", "--json")
    assert said.code == 1
    taken = {one["way"]: (one["taken"], one["told"]) for one in json.loads(said.out)}
    assert taken["email"] == (True, "")
    assert taken["webhook"][0] is False
    assert "answered 404 (invalid_token)" in taken["webhook"][1]


def test_without_recipients_there_is_nobody_to_test(
    terminal: Terminal, unsynced: SampleLake
) -> None:
    said = terminal.run("alerts", "--test")
    assert said.code == 2
    assert "Name recipients under `alerts` in lake.yaml" in said.err
    said = terminal.run("alerts")
    assert (said.code, said.out) == (0, "No trouble is open.\n")
    assert "nobody is told of web_shop, ios_prod" in said.err


def test_open_troubles_and_messages_are_shown_with_what_became_of_them(
    terminal: Terminal, told: SampleLake
) -> None:
    since = fail_syncs(told, 5)
    said = terminal.run("alerts")
    assert said.code == 0
    assert f"ios_prod: 5 syncs failed in a row  {since:%Y-%m-%d %H:%M}" in said.out
    assert "email (waits), webhook (waits)" in said.out
    assert "warning: webhook has not taken 'ios_prod: sync failed': web hook at local" in said.err

    [web, ios] = terminal.run("alerts", "--json").json
    assert (web["source"], web["open"], web["messages"]) == ("web_shop", [], [])
    assert [trouble["kind"] for trouble in ios["open"]] == ["sync_failures"]
    assert [message["title"] for message in ios["messages"]] == [
        "ios_prod: 5 syncs failed in a row",
        "ios_prod: sync failed",
    ]
    assert ios["messages"][1]["waiting"]["webhook"]["tries"] == 5


def test_check_tries_the_ways_without_sending(
    terminal: Terminal, told: SampleLake, mail_box: MailBox, hook: Hook
) -> None:
    said = terminal.run("check")
    assert said.code == 0
    assert "answers, STARTTLS, logged in as datalake; nothing was sent" in said.out
    assert "answers, TLS; nothing was posted" in said.out
    assert (mail_box.mails, hook.posts) == ([], [])


def test_check_finds_a_variable_that_is_not_set(
    terminal: Terminal, told: SampleLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DATALAKE_WEBHOOK")
    said = terminal.run("check")
    assert said.code == 1
    assert re.search("alerts by webhook +Alerts would not come through:", said.out)
    assert "the environment variable DATALAKE_WEBHOOK is not set" in said.out
