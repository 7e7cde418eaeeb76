"""Makes a plan from a checkpoint and its graph (`planner`), and checks an edited one (`checking`).

1. Slots are joined to their variables (`migrate.optimizers.slots`).
2. Tables are the variables of two dimensions and a floating type that the graph looks up, or
   those that the caller's regular expression names.
3. The partition strategy of a partitioned table comes from the graph, else from the caller. The
   checkpoint itself does not record it, and concatenating "mod" partitions would be silently wrong.
4. The pooling comes from the graph too; where look-ups disagree, it stays open and a note says so.
5. Hash tables of rows of numbers become tables too; the caller chooses how their ids find a row.
6. All other variables are dense, whatever their shapes; only the scalars that a training step
   counts with stand apart. Tensors that cannot be converted are dropped with a reason.
"""
