"""Upkeep: what runs leave behind is found from their manifests, and goes after a grace time."""
