"""One training in several processes: their ranks, their devices, and their shards."""
