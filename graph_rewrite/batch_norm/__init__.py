"""Finding batch normalisations in a graph: the layers, their statistics and their updates."""
