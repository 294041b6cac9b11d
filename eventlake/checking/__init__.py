"""Checks of what is published: does the lake still hold what its manifests say."""
