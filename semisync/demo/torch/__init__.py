"""The demo's torch half: the same DeepFM in TorchRec."""
