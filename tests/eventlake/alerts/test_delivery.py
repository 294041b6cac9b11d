"""Every message goes out by every way, once and in order, whatever is down or dies."""

import threading
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventlake.alerts import delivery as looking
from eventlake.alerts.channels.base import Channel
from eventlake.alerts.delivery import CLAIM
from eventlake.alerts.state import GIVE_UP
from tests.support.alerts.lakes import BEGIN, REFUSED, WatchedLake, Way
from tests.support.servers.aws import AwsServer

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


def test_a_way_that_refuses_is_tried_again_and_the_others_are_not(
    watched: WatchedLake, ways: tuple[Way, Way]
) -> None:
    mail, hook = ways
    hook.down = True
    watched.run(BEGIN + HOUR, REFUSED)
    told = watched.look(BEGIN + HOUR, {})
    assert told == [
        "shop, by email: shop: sync failed.",
        "shop, by webhook: not sent, and tried again at the next look: out of order",
    ]
    [letter] = watched.state.letters
    assert (letter.due["webhook"].tries, letter.due["webhook"].error) == (1, "out of order")
    watched.look(BEGIN + HOUR + MINUTE, {})
    hook.down = False
    watched.look(BEGIN + HOUR + 2 * MINUTE, {})
    watched.look(BEGIN + HOUR + 3 * MINUTE, {})
    assert (mail.titles, hook.titles) == (["sync failed"], ["sync failed"])


def test_a_way_that_refuses_for_days_is_given_up_and_that_is_kept(
    watched: WatchedLake, ways: tuple[Way, Way]
) -> None:
    ways[0].down = True
    watched.run(BEGIN + HOUR, REFUSED)
    now = BEGIN + HOUR
    while now < BEGIN + GIVE_UP + 3 * HOUR:
        watched.look(now, {})
        now += HOUR
    [letter] = watched.state.letters
    assert (letter.due, letter.lost) == ({}, {"email": "out of order"})
    ways[0].down = False
    assert watched.look(now, {}) == []


def test_messages_of_a_way_that_was_down_come_in_their_order(
    watched: WatchedLake, ways: tuple[Way, Way]
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
    watched: WatchedLake, ways: tuple[Way, Way]
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
    tmp_path: Path, aws: AwsServer, ways: tuple[Way, Way], on_s3: bool
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
    flaky, steady = Way("a"), Way("b")
    named: dict[str, Channel] = {"email": flaky, "webhook": steady}
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as root:
        patch.setattr(looking, "channels", lambda source, environ: named)
        lake, now = WatchedLake(root, email_to="data@example.com"), BEGIN
        lake.look(now, {})
        for letter, flaky.down in zip(history, down, strict=False):
            now += HOUR
            lake.run(now, REFUSED if letter in "Ff" else None, replay=letter.islower())
            lake.look(now, {})
        flaky.down = False
        lake.look(now, {})
    assert flaky.titles == steady.titles == due(history)


def due(history: str) -> list[str]:
    told, rows = list[str](), {"sync": 0, "replay": 0}
    for letter in history:
        work = "replay" if letter.islower() else "sync"
        if letter in "Ff":
            rows[work] += 1
            if rows[work] == 1:
                told.append(f"{work} failed")
            elif rows[work] in (5, 20):
                told.append(f"{rows[work]} {work}s failed in a row")
        elif rows[work]:
            told.append(f"{work} recovered after {rows[work]} failure" + "s" * (rows[work] > 1))
            rows[work] = 0
    return told
