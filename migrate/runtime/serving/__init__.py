"""Scoring at full speed, and outside of Python."""
