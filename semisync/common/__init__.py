"""What all packages share: errors, exit codes, atomic files, the TensorFlow that is there."""
