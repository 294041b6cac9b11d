"""How the same sync gains by a second worker of a standalone cluster."""
