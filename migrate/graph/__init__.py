"""Reading a MetaGraph without TensorFlow: look-ups, pooling, training ops, optimizers."""
