"""How time and memory of a sync grow with events, tables, hours, columns and history."""
