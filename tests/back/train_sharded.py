"""Two gloo processes train a converted checkpoint under DMP and save it; run as a module.

    python -m tests.back.train_sharded RANK RENDEZVOUS_FILE CONVERTED BATCHES.npz OUT SHARDING...

For each way of sharding of tests.migrate.train_sharded: load, three steps, and a DCP of the model,
of its optimizer and of the dense variables, as they were, in OUT/<sharding>.
"""

import os
import sys
from datetime import timedelta

import numpy as np
import torch.distributed as dist
from torch.distributed import checkpoint as dcp

from migrate.torchrec import dense_variables, load
from tests.migrate.train_sharded import sharded, train


def main():
    rank, rendezvous, converted, batches, out, *shardings = sys.argv[1:]
    dist.init_process_group(
        "gloo",
        init_method="file://" + rendezvous,
        rank=int(rank),
        world_size=2,
        timeout=timedelta(seconds=300),
    )
    dense = {f"dense.{name}": value for name, value in dense_variables(converted).items()}
    for how in shardings:
        model = sharded(converted, how)
        load(model, converted)
        train(model, np.load(batches), int(rank))
        optim = model.fused_optimizer.state_dict()
        states = {key: value for key, value in optim["state"].items() if value}
        saved = {"model": model.state_dict(), "optim": {"state": states}, **dense}
        dcp.save(saved, checkpoint_id=f"{out}/{how}")
    dist.barrier()  # nobody tears its connections down while the other still uses them
    dist.destroy_process_group()
    os._exit(0)  # all is on the disk; torch's own threads now and then abort Python's teardown


if __name__ == "__main__":
    main()
