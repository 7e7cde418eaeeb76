"""The wrapped optimizer, and its parts of the user's graph."""
