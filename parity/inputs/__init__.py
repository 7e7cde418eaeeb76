"""What a comparison takes: checked labels, scores, weights, groups and ids."""
