"""How a graph trains: its training ops, global step, hyperparameters and the chief's part."""
