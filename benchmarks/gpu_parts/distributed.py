"""A converted model under TorchRec's DistributedModelParallel, by NCCL, in one process: FBGEMM's
kernels step its tables within the backward pass.

The CPU's losses and weights, the pace, and whether a checkpoint gives the training back.
"""

import tempfile
import time

import torch.distributed as dist

from benchmarks.gpu_parts.model import BATCH, compared, opened, read, trained
from benchmarks.gpu_parts.timing import synchronize
from migrate.training import Checkpoints, distribute
from migrate.training import state as states
from migrate.training.metrics import Metrics


def measure(device, folder, short):
    """Yields the errors against the CPU, the pace, and what differs after a checkpoint."""
    prefix, batches = read(folder, short)
    few = batches[: 3 if short else 20]
    expected = trained(opened(prefix).task, few)
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    try:
        task = distribute(opened(prefix).task, device)
        found = trained(task, few)
        yield {"what": f"after {len(few)} steps", **compared(found, expected)}
        synchronize(device)
        began = time.perf_counter()
        trained(task, batches)
        synchronize(device)
        rows = BATCH * len(batches)
        yield {"what": "rows in memory", "rows/s": rows / (time.perf_counter() - began)}
        yield {"what": "after a checkpoint", **_resumed(task, prefix, few, device)}
    finally:
        dist.destroy_process_group()


def _resumed(task, prefix, batches, device):
    with tempfile.TemporaryDirectory() as folder:
        checkpoints = Checkpoints(folder, group=dist.new_group(backend="gloo"))
        states.save(checkpoints, 1, task, Metrics(), {})
        checkpoints.wait()
        again = distribute(opened(prefix).task, device)
        states.load(checkpoints, 1, again)
    return compared(trained(again, batches), trained(task, batches))
