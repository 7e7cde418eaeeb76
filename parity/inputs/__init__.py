"""A comparison's inputs: checked labels, scores, weights, groups and ids."""
