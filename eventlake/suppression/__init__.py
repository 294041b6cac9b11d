"""People whose events are not loaded: the lists of them, kept in the lake."""
