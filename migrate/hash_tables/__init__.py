"""Hash tables in checkpoints and in files of their own: one module per writer."""
