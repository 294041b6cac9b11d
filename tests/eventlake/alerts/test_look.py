"""Looks at a lake: what is counted of its reports, and of what Dagster knows of them."""

import os
from datetime import timedelta
from pathlib import Path

import pytest

from eventlake.alerts.run_status import Fate
from eventlake.runs.dead_runs import INTERRUPTED
from eventlake.runs.failures import CANCELLED
from eventlake.runs.open_runs import OpenRun
from eventlake.state.lease import myself
from eventlake.state.report import RunFacts
from eventlake.storage.documents import encode
from tests.support.alerts.lakes import BEGIN, REFUSED, WatchedLake, Way
from tests.support.servers.alerts import USER, Hook, MailBox, subscribed
from tests.support.servers.aws import AwsServer

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


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
        "What to do: Grant what the error names, then try `datalake check`. The next sync tries "
        "again by itself and goes on from what is published.\n"
        "The next message comes at the 20th failure in a row and when it recovers.\n"
        "Run: https://dagster.example.com/runs/d4\n"
    )
    payload = hook.posts[2]["metadata"]["event_payload"]
    assert (payload["failures"], payload["error_code"]) == (20, "Segment.InsufficientPermissions")


def test_a_run_that_went_on_for_days_is_counted_when_it_ends(
    watched: WatchedLake, ways: tuple[Way, Way]
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


RUNNING = Fate("d1", over=False)
FAILED = Fate("d1", failed=True)


@pytest.mark.parametrize(
    ("failure", "fates", "expected"),
    [
        (REFUSED, [None], ["sync failed"]),
        (REFUSED, [FAILED], ["sync failed"]),
        (REFUSED, [RUNNING, FAILED], ["", "sync failed"]),
        (INTERRUPTED, [RUNNING, Fate("d1", failed=True, will_retry=True)], ["", ""]),
        (CANCELLED, [None], [""]),
        (CANCELLED, [Fate("d1")], [""]),
        (CANCELLED, [RUNNING, FAILED], ["", "sync failed"]),  # by Dagster: it took too long
        (INTERRUPTED, [Fate("d1")], [""]),  # it died while a person cancelled it
    ],
)
def test_what_dagster_knows_of_a_failed_run_counts(
    watched: WatchedLake,
    ways: tuple[Way, Way],
    failure: object,
    fates: list[Fate | None],
    expected: list[str],
) -> None:
    watched.run(BEGIN + HOUR, failure, dagster_run_id="d1")  # type: ignore[arg-type]
    for number, (fate, title) in enumerate(zip(fates, expected, strict=True)):
        watched.look(BEGIN + HOUR + number * MINUTE, {}, {"d1": fate}.get)
        assert ways[0].titles == [title] * bool(title)


def test_dagster_that_never_hears_the_end_of_a_run_is_not_waited_for(
    watched: WatchedLake, ways: tuple[Way, Way]
) -> None:
    watched.run(BEGIN + HOUR, REFUSED, dagster_run_id="d1")
    watched.look(BEGIN + HOUR, {}, lambda id: RUNNING)
    watched.look(BEGIN + HOUR + 10 * MINUTE, {}, lambda id: RUNNING)
    assert ways[0].titles == ["sync failed"]


def test_a_run_that_died_and_its_retry_are_one_failure(
    watched: WatchedLake, ways: tuple[Way, Way]
) -> None:
    known = {"d1": Fate("d1", failed=True, will_retry=True), "d2": FAILED}
    watched.run(BEGIN + HOUR, INTERRUPTED, dagster_run_id="d1")
    watched.run(BEGIN + HOUR + MINUTE, INTERRUPTED, dagster_run_id="d2")
    watched.look(BEGIN + 2 * HOUR, {}, known.get)
    assert (ways[0].titles, watched.state.syncs.failures) == (["sync failed"], 1)


def test_without_recipients_nothing_is_looked_at_or_written(tmp_path: Path) -> None:
    lake = WatchedLake(tmp_path)
    lake.run(BEGIN, REFUSED)
    assert lake.look(BEGIN, {}) == []
    assert not lake.lake.storage.exists("segment-data/_state/sources/S1/alerts.json")


def test_nothing_new_is_nothing_written(watched: WatchedLake, ways: tuple[Way, Way]) -> None:
    path = "segment-data/_state/sources/S1/alerts.json"
    [before] = watched.lake.storage.files(path.rsplit("/", 1)[0], recursive=False)
    watched.look(BEGIN + MINUTE, {})
    [after] = watched.lake.storage.files(path.rsplit("/", 1)[0], recursive=False)
    assert before == after


def test_a_clock_that_is_set_back_hides_nothing(
    watched: WatchedLake, ways: tuple[Way, Way]
) -> None:
    watched.look(BEGIN + timedelta(days=365), {})  # somebody's clock
    watched.run(BEGIN + HOUR, REFUSED)
    for minutes in range(3):
        watched.look(BEGIN + HOUR + minutes * MINUTE, {})
    assert ways[0].titles == ["sync failed"]
