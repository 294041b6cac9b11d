"""Runs: planning units of work, carrying them through the data flow, publishing what they made."""
