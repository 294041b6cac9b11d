"""Alerts: each problem is reported once per channel, and again when it is over."""
