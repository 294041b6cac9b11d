"""What a run does: plan, process units of work, publish, report."""
