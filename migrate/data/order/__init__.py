"""The order of rows and their ranks: only numbers, no files."""
