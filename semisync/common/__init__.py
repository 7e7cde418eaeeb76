"""Shared by all packages: errors, exit codes, atomic files, the TensorFlow that is there."""
