"""What the lake remembers of a source: manifests, and all that is derived from them."""
