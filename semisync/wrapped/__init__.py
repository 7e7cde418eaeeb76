"""The wrapped optimizer, and what belongs to it in the user's graph."""
