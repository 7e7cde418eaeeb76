"""What `semisync inspect` tells of a checkpoint: its tensors, and what their rows look like."""
