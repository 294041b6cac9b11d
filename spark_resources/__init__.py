"""The engines: where Spark runs, behind one interface."""
