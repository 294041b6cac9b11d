"""What the lake stores about a source: manifests, and everything derived from them."""
