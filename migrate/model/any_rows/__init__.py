"""A graph of a batch of a fixed size as one of any number of rows.

`sizes` and `rules` find which dimensions of tensors are the batch's rows, `free` changes the graph
so that their number is free, and `made` has the nodes that are added to the graph.
"""
