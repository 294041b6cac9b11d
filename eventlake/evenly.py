"""Things of unlike weight in shares of about the same."""

from collections.abc import Callable, Iterable
from heapq import heapify, heapreplace
from typing import TypeVar

T = TypeVar("T")


def evenly(things: Iterable[T], weight: Callable[[T], int], count: int) -> list[list[T]]:
    """At most so many shares, the heaviest first; each thing goes to the lightest of them."""
    shares: list[tuple[int, int, list[T]]] = [(0, number, []) for number in range(count)]
    heapify(shares)
    for thing in sorted(things, key=weight, reverse=True):
        load, number, share = shares[0]
        share.append(thing)
        heapreplace(shares, (load + weight(thing), number, share))
    return [share for _, _, share in sorted(shares, reverse=True) if share]
