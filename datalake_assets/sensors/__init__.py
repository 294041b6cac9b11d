"""Sensors: alerts, dead runs, reload for new tables."""
