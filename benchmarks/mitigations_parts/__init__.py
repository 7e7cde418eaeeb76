"""The parts of `benchmarks/mitigations.py`."""
