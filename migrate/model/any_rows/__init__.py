"""A graph of a batch of a fixed size as one of any number of rows.

`sizes` and `rules` say which dimensions of tensors are the batch's rows, `free` what must change
for these to be any number, and `made` has the nodes that are put into the graph.
"""
