"""The lake held against the raw archive: every line is read anew, every id is looked for."""
