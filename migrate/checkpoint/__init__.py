"""Readers of TensorFlow checkpoints, one a format; none needs TensorFlow."""
