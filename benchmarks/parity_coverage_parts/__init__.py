"""What `benchmarks/parity_coverage.py --verdicts` simulates, a table each."""
