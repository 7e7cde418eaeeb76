"""Subcommands of `semisync` that read TensorFlow checkpoints."""
