"""Rows on their way from source to target."""
