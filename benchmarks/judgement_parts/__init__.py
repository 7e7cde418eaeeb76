"""The parts of `benchmarks/judgement.py`."""
