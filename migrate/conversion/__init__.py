"""Carrying out a plan: streaming tensors from a checkpoint into a target."""
