"""From a TensorFlow graph and its checkpoint to a torch module: code that a team can own."""
