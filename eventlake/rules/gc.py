"""Python's search for cycles of objects, and where it is only in the way."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_paused() -> Iterator[None]:
    """No search inside: for work that makes many objects, and leaves no cycles.

    Each search goes through all objects that live, and more of them come all the time.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
