"""Any history of runs, looked at any number of times, against counting on one's fingers."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from eventlake.alerts.run_status import Attempt, Outcome
from tests.support.alerts.histories import BEGIN, HOUR, looked, run, titles, watched_since


@st.composite
def histories(draw: st.DrawFn) -> list[Attempt]:
    """Syncs and replays that end in any way; a failed one may be tried again later."""
    attempts: list[Attempt] = []
    for number, letter in enumerate(draw(st.text("FFFKXffkx", max_size=60))):
        tried = [one for one in attempts if one.replay == letter.islower() and letter in "Ff"]
        again = draw(st.sampled_from(tried)) if tried and draw(st.integers(0, 4)) == 0 else None
        work = again.work if again else f"d{number}"
        attempts.append(run(number, letter, work=work))
    return attempts


def due(history: Sequence[Attempt]) -> list[str]:
    """What is to be told of a history, as one would count on one's fingers."""
    told: list[str] = []
    rows: dict[bool, list[str]] = {False: [], True: []}
    for attempt in history:
        name, row = "replay" if attempt.replay else "sync", rows[attempt.replay]
        if attempt.outcome is Outcome.FINISHED:
            if row:
                ending = "" if len(row) == 1 else "s"
                told.append(f"{name} recovered after {len(row)} failure{ending}")
            row.clear()
        elif attempt.outcome is Outcome.FAILED and attempt.work not in row:
            row.append(attempt.work)
            if len(row) == 1:
                told.append(f"{name} failed")
            elif len(row) in (5, 20):
                told.append(f"{len(row)} {name}s failed in a row")
    return told


@given(histories(), st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=9))
def test_whenever_somebody_looks_each_message_is_told_once(
    history: list[Attempt], looks: list[tuple[int, int]]
) -> None:
    state, known = watched_since(), 0
    for upto, again in [*sorted(looks), (60, 60)]:
        # Some of what was seen before is seen once more.
        now = BEGIN + min(upto, len(history)) * HOUR
        state = looked(state, now, history[min(again, known) : upto])
        known = upto
    assert titles(state.letters) == due(history)
    ids = [letter.message.id for letter in state.letters]
    assert len(set(ids)) == len(ids)
