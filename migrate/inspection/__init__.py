"""`semisync inspect` of a checkpoint: its tensors, and statistics of their rows."""
