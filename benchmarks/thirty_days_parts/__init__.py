"""What `benchmarks.thirty_days` consists of."""
