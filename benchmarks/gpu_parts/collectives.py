"""DistributedDataParallel in one process, by NCCL on a GPU: the steps of the module alone."""

import copy
import os
import socket

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def measure(device, folder, short):
    """Yields the largest error of a weight after ten steps."""
    backend = "nccl" if device.type == "cuda" else "gloo"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free.getsockname()[1]))
    dist.init_process_group(backend, rank=0, world_size=1)
    try:
        torch.manual_seed(0)
        alone = torch.nn.Sequential(
            torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)
        )
        alone.to(device)
        shared = copy.deepcopy(alone)
        places = [device.index or 0] if device.type == "cuda" else None
        for module in (alone, DistributedDataParallel(shared, device_ids=places)):
            optimizer = torch.optim.Adagrad(module.parameters(), lr=0.1)
            rows = torch.Generator().manual_seed(1)
            for _ in range(10):
                optimizer.zero_grad()
                module(torch.randn(256, 64, generator=rows).to(device)).square().mean().backward()
                optimizer.step()
        errors = [
            float((one - other).abs().max())
            for one, other in zip(alone.parameters(), shared.parameters())
        ]
        yield {"backend": backend, "error of weights": max(errors)}
    finally:
        dist.destroy_process_group()
