"""The parts of benchmarks/files.py: machines with links, what runs on them, the simulation."""
