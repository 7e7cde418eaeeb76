"""What a MetaGraph says without TensorFlow: look-ups, pooling, training ops, optimizers."""
