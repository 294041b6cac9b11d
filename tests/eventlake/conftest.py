"""Hypothesis without a clock: the first example pays for imports, and machines are busy."""

from hypothesis import settings

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
