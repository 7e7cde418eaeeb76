"""From a checkpoint and its graph to a plan (`planner`), and does an edited one fit (`checking`)?

1. Slots are joined to their variables (`migrate.optimizers.slots`).
2. Tables are the variables of two dimensions and a floating type that the graph looks up, or
   those that the caller's regular expression names.
3. The partition strategy of a partitioned table comes from the graph, else from the caller. The
   checkpoint itself does not tell it, and concatenating "mod" partitions would be silently wrong.
4. So does the pooling; where look-ups do not agree on one, it stays open and a note says so.
5. Hash tables of rows of numbers become tables too; how their ids find a row, the caller says.
6. All others are dense, whatever its shape; only the scalars that a training step counts with
   stand apart. Tensors that cannot be converted are dropped with a reason.
"""
