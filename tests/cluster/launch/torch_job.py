"""A torch job under torchrun: sums the ranks so often, and leaves its process id and the sums.

    torchrun tests/cluster/launch/torch_job.py FOLDER STEPS

It waits in the middle, until the file FOLDER/go is there.
"""

import os
import pathlib
import sys
import time

import torch
import torch.distributed


def main():
    folder, steps = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    torch.distributed.init_process_group("gloo")
    rank = torch.distributed.get_rank()
    total = torch.zeros([])
    for step in range(steps):
        one = torch.tensor(float(rank + 1))
        torch.distributed.all_reduce(one)
        total += one
        if step == steps // 2:
            (folder / "pid-{}".format(rank)).write_text(str(os.getpid()))
            while not (folder / "go").exists():
                time.sleep(0.01)
    (folder / "sum-{}".format(rank)).write_text(str(total.item()))
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
