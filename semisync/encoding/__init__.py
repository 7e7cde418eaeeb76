"""Bytes as TensorFlow writes them: varints, protocol buffers, tables, checksums, types."""
