"""The record log: what happened to every record of a run."""
