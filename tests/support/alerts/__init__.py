"""Histories of runs for the tests of alerts."""
