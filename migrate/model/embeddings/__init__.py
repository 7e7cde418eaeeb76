"""Embedding look-ups, which become TorchRec's collections."""
