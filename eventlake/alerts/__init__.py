"""Telling people of troubles: once each, by every way they asked for, and when they are over."""
