"""What a cluster needs to carry out our jobs, brought to the lake's storage once per version."""
