"""Where Spark runs: one interface, one module or package per engine."""
