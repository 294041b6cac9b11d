"""How many faults this session of tests has injected, by kind: told at the end of it."""

from collections import Counter

injected: Counter[str] = Counter()
