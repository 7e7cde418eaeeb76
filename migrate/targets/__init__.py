"""Writers of torch checkpoints, one a format."""
