"""Tests of migrate.data."""
