"""Audits: every line of the raw archive is read again and every id is looked up in the lake."""
