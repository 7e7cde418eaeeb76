"""HSTU on GPUs: attention over ragged sequences without its matrix in memory."""
