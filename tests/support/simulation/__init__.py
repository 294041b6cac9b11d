"""A simulated deployment: days of events, faults and time."""
