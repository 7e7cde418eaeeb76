"""The demo's TensorFlow half: a DeepFM trained on a cluster, mode after mode."""
