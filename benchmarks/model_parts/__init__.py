"""The parts of benchmarks/model.py."""
