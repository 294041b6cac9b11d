"""How often to ask again, and how long to wait before it."""

import random
import time
from collections.abc import Iterator

_ATTEMPTS = 12
_FIRST, _LONGEST = 0.1, 5.0


def attempts() -> Iterator[bool]:
    """Whether it is the last one; with growing waits between them, half a minute in all."""
    for number in range(_ATTEMPTS):
        if number:
            # Whoever collides with others must not do so again in step with them.
            time.sleep(random.uniform(0.5, 1) * min(_FIRST * 2 ** (number - 1), _LONGEST))
        yield number == _ATTEMPTS - 1
