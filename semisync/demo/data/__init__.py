"""The click log of the demo: generated, or read from files."""
