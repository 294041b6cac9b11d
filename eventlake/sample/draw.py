"""Random values that are the same in every process: all from one seeded stream."""

from collections.abc import Sequence
from random import Random
from typing import TypeVar

from msgspec import Raw

T = TypeVar("T")


class Draw:
    """The stream of one file; `day` (from 1) is the day on which its rows are received.

    Uses nothing of `random` but the raw stream, which Python promises not to change.
    """

    __slots__ = ("bits", "day", "faults", "random")

    def __init__(self, seed: str, day: int = 1, faults: bool = False) -> None:
        stream = Random(seed)
        self.random = stream.random
        self.bits = stream.getrandbits
        self.day = day
        self.faults = faults

    def below(self, limit: int) -> int:
        return int(self.random() * limit)

    def between(self, least: int, most: int) -> int:
        return least + int(self.random() * (most - least + 1))

    def pick(self, choices: Sequence[T]) -> T:
        return choices[int(self.random() * len(choices))]

    def some(self, choices: Sequence[T], most: int) -> list[T]:
        """One to `most` of them, in any order, possibly one twice."""
        return [self.pick(choices) for _ in range(1 + self.below(most))]

    def chance(self, probability: float) -> bool:
        return self.random() < probability

    def odd(self, probability: float) -> bool:
        """A chance for what does not fit; never in an archive without faults."""
        return self.random() < probability and self.faults

    def uuid(self) -> str:
        digits = f"{self.bits(128):032x}"
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"

    def code(self, prefix: str) -> str:
        return f"{prefix}_{self.bits(48):012x}"

    def money(self, most: int) -> Raw:
        """An amount with the spellings that shops really send: `12.37`, `12.5`, `12.50`, `12`."""
        whole, cents = divmod(1 + self.below(most * 100), 100)
        if cents % 10:
            return Raw(b"%d.%02d" % (whole, cents))
        if self.random() < 0.5:
            return Raw(b"%d.%02d" % (whole, cents))
        return Raw(b"%d.%d" % (whole, cents // 10) if cents else b"%d" % whole)

    def degrees(self, near: float) -> Raw:
        """A coordinate with eight decimals, more than decimal(38,6) can hold."""
        return Raw(b"%.8f" % (near + self.random() - 0.5))
