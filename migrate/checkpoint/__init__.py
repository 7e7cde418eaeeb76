"""Readers of TensorFlow checkpoints, one per format; none of them needs TensorFlow."""
