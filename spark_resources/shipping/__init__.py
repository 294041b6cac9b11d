"""Code and packages for clusters, uploaded to the storage of the lake once per version."""
