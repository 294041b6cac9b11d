"""Audits: read every line of the raw archive again and look up every id in the lake."""
