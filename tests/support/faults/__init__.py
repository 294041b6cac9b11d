"""Faults: storage that fails, processes that are killed, machines that compete."""
