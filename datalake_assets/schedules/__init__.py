"""Schedules: when syncs run."""
