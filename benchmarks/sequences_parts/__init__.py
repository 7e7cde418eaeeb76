"""The parts of benchmarks/sequences.py."""
