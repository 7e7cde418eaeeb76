"""A graph for batches of a fixed size, changed to take any number of rows.

`sizes` and `rules` find which dimensions of tensors are the batch's rows, `free` changes the graph
so that their number is free, and `made` makes the nodes that are added to the graph.
"""
