"""The demo's TensorFlow half: a DeepFM trained on a cluster, in one mode after another."""
