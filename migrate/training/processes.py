"""The processes of one training, as torchrun starts them, and a start without torchrun.

1. torchrun gives each process RANK, WORLD_SIZE and the others' address; without them there is one.
2. Every wait for another process has a deadline, after which it fails: no process is left hanging
   by one that failed.
3. torchrun's agent ends the others when one dies, and restarts all, up to --max-restarts times;
   with --resume they go on from the last whole checkpoint.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from datetime import timedelta
from typing import Iterator, List

import torch.distributed as dist

from semisync.common.errors import SemisyncError


@contextmanager
def joined(deadline: float) -> Iterator[None]:
    """Initialises torch.distributed inside the block where there are several processes.

    Args:
        deadline: seconds that a process waits for the others.

    Yields:
        None.

    Examples:
        >>> from migrate.training import joined
        >>> with joined(deadline=600):
        ...     print(torch.distributed.is_initialized())  # True under torchrun
        False
    """
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield
        return
    store, number, size = next(dist.rendezvous("env://"))
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    dist.init_process_group(
        "gloo",
        # torchrun's store still has the addresses of the processes that were ended
        store=dist.PrefixStore(f"attempt {attempt}", store),
        rank=number,
        world_size=size,
        timeout=timedelta(seconds=deadline),
    )
    try:
        yield
        dist.barrier()  # nobody tears its connections down while another still uses them
    finally:
        dist.destroy_process_group()


def rank() -> int:
    """This process's number; 0 of one."""
    return dist.get_rank() if dist.is_initialized() else 0


def ranks() -> int:
    """How many processes there are."""
    return dist.get_world_size() if dist.is_initialized() else 1


def from_first(value: object) -> object:
    """Rank 0's `value`, on all processes."""
    if not dist.is_initialized():
        return value
    box = [value]
    dist.broadcast_object_list(box, src=0)
    return box[0]


def launch(arguments: List[str], processes: int, restarts: int) -> int:
    """Runs `semisync` with `arguments`, a subcommand first, in several processes of this machine,
    under torchrun's agent. Returns the exit code: of a process that failed, its own.

    Raises SemisyncError where one was killed more often than `restarts` allows.
    """
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    config = LaunchConfig(
        run_id="semisync",
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=processes,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=restarts,
        monitor_interval=0.5,
    )
    program = [sys.executable, "-m", "semisync", *arguments]
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // processes)))
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    try:
        elastic_launch(config, program[0])(*program[1:])
    except ChildFailedError as error:
        number, failure = error.get_first_failure()
        if failure.exitcode > 0:
            return failure.exitcode
        raise SemisyncError(
            f"process {number} was ended by signal {-failure.exitcode}, after {restarts} restarts; "
            "go on with --resume"
        ) from error
    return 0
