"""Loops over rows and bytes, which numba compiles; each takes and gives NumPy arrays only."""
