"""Which row comes when, and on which rank: numbers alone, no files."""
