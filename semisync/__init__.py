"""Semi-synchronous training for TensorFlow parameter servers."""
