"""The record log: what became of every single record of a run."""
