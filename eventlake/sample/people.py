"""Who sends events, and the part of `context` that stays with a person's browser or phone."""

from dataclasses import dataclass

from eventlake.sample.browsers import browser
from eventlake.sample.draw import Draw
from eventlake.sample.kinds import Fields
from eventlake.sample.phones import phone
from eventlake.sample.spec import SampleSource

PEOPLE = 2_000


@dataclass(frozen=True, slots=True)
class Person:
    """A visitor, known (with a user id) or not."""

    anonymous_id: str
    user_id: str | None
    context: Fields


def people_of(source: SampleSource, seed: int) -> tuple[Person, ...]:
    """The same people every day."""
    draw = Draw(f"{seed}/{source.slug}/people")
    device = browser if source.platform == "web" else phone
    return tuple(_person(draw, device(draw)) for _ in range(PEOPLE))


def _person(draw: Draw, context: Fields) -> Person:
    user_id = f"u{draw.between(10_000, 99_999)}" if draw.chance(0.6) else None
    if user_id:
        context["traits"] = {"email": f"{user_id}@example.com", "plan": draw.pick(("free", "plus"))}
    return Person(draw.uuid(), user_id, context)
