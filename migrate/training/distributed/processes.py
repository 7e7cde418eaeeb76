"""The processes of one training, as a launcher starts them, and a start without a launcher.

1. torchrun, or a scheduler's operator, gives each process RANK, WORLD_SIZE and the others' address;
   without them there is one.
2. Every wait for another process has a deadline, after which it fails: no process is left hanging
   by one that failed.
3. When one dies the others fail too, and the launcher starts all anew, torchrun's agent up to
   --max-restarts times; with --resume they go on from the last whole checkpoint.

The processes of one start meet in a store with the leftovers of earlier ones: torchrun keeps one
store for all starts, and has no number for a start on which the agents of several nodes agree:
TORCHELASTIC_RESTART_COUNT is how often an agent's own processes failed. The processes of an earlier
start have ended before those of the next begin. So

    rank 0          makes up a name, and answers with it whatever any other rank calls itself,
                    until all of them have said that they know it
    another rank    calls itself by a name of its own, waits for the answer to that, and says so
"""

from __future__ import annotations

import os
import sys
import time
import uuid
from contextlib import contextmanager
from datetime import timedelta
from typing import Iterator, List, Optional

import torch
import torch.distributed as dist

from migrate.launcher import Rank, from_environment, usable
from migrate.training.distributed.devices import device_of
from semisync.common.errors import SemisyncError, UsageError

_PAUSE = 0.02  # seconds between two looks
_GLOO = "/gloo/"  # in the place of its source with which each of its errors begins


@contextmanager
def joined(deadline: float, device: str = "cpu") -> Iterator[torch.device]:
    """Initialises torch.distributed within the block: gloo, and NCCL for tensors on GPUs.

    It does so for several processes, and for a launcher's only one on a GPU.

    Args:
        deadline: seconds that a process waits for the others.
        device: as of `device_of`.

    Yields:
        The device of this process.

    Raises:
        SemisyncError: another process does not come, or is lost.
        UsageError: as of `device_of`.

    Examples:
        >>> from migrate.training import joined
        >>> with joined(deadline=600) as device:
        ...     print(device, torch.distributed.is_initialized())  # True under torchrun
        cpu False
    """
    own, limit, where = from_environment(deadline), timedelta(seconds=deadline), device_of(device)
    launched = "RANK" in os.environ
    if own.size == 1 and not (launched and where.type == "cuda"):
        yield where
        return
    store = _met(own, limit)
    dist.init_process_group(
        "cpu:gloo,cuda:nccl" if where.type == "cuda" else "gloo",
        store=store,
        rank=own.number,
        world_size=own.size,
        timeout=limit,
    )
    try:
        yield where
        dist.barrier()  # nobody tears its connections down while another still uses them
    except RuntimeError as error:
        if not (isinstance(error, dist.DistError) or _GLOO in str(error)):
            raise
        raise SemisyncError(
            f"process {own.number} of {own.size} lost another one ({_first_line(error)}), whose "
            "own message says why; start all of them again, with --resume"
        ) from error
    finally:
        dist.destroy_process_group()


def _met(own: Rank, limit: timedelta) -> dist.Store:
    """The store in which all processes have met; raises SemisyncError if one is late."""
    try:
        store, _, _ = next(dist.rendezvous("env://", timeout=limit))
        return meet(store, own)
    except dist.DistError as error:
        place = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
        raise SemisyncError(
            f"process {own.number} of {own.size} did not meet all others at {place} in "
            f"{own.deadline:.0f} s ({_first_line(error)}); start all of them, with --resume"
        ) from error


def _first_line(error: Exception) -> str:
    """torch's message, without the place in its source and the trace."""
    said = str(error).partition("\n")[0]
    return said.partition("] ")[2].partition(". ")[0] if _GLOO in said else said


def use_threads(number: Optional[int]) -> None:
    """Sets the number of torch's threads; None: at most this process's share of usable CPUs."""
    share = max(1, usable() // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
    torch.set_num_threads(number or min(torch.get_num_threads(), share))


def seed(number: int) -> None:
    """Seeds torch's random numbers."""
    torch.manual_seed(number)


def is_joined() -> bool:
    """Whether torch.distributed is initialised."""
    return dist.is_initialized()


def rank() -> int:
    """This process's number; 0 of one."""
    return dist.get_rank() if is_joined() else 0


def ranks() -> int:
    """How many processes there are."""
    return dist.get_world_size() if is_joined() else 1


def from_first(value: object) -> object:
    """Rank 0's `value`, on all processes."""
    if not is_joined():
        return value
    box = [value]
    dist.broadcast_object_list(box, src=0)
    return box[0]


def is_to_launch(processes: Optional[int]) -> bool:
    """Whether this process is to `launch` others; raises UsageError if it was launched itself."""
    if processes is None:
        return False
    own = from_environment()
    if own.size > 1:
        raise UsageError(
            f"--nproc {processes}: a launcher has started this process as one of {own.size}; "
            "leave --nproc out, or have the launcher start one process"
        )
    return True


def launch(arguments: List[str], processes: int, restarts: int) -> int:
    """Runs a subcommand of `semisync` in several local processes under torchrun's agent.

    Args:
        arguments: the subcommand first.

    Returns:
        The exit code; of a process that failed, its own.

    Raises:
        SemisyncError: one was killed more often than `restarts` allows.
    """
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    config = LaunchConfig(
        run_id="semisync",
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=processes,
        rdzv_backend="c10d",
        # As torchrun --standalone: any free port.
        rdzv_endpoint="localhost:0",
        max_restarts=restarts,
        monitor_interval=0.5,
    )
    program = [sys.executable, "-m", "semisync", *arguments]
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, usable() // processes)))
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


def meet(store: dist.Store, own: Rank) -> dist.Store:
    """The part of the store that is this start's alone.

    Raises:
        SemisyncError: a rank does not join within `own.deadline` seconds.
    """
    start = uuid.uuid4().hex
    if own.number == 0:
        _answer(store, own, start)
    else:
        store.set_timeout(timedelta(seconds=own.deadline))
        store.set(_called(own.number), start)
        start = store.get(_answered(start)).decode()
        store.set(_known(start, own.number), "")
    return dist.PrefixStore(start, store)


def _answer(store: dist.Store, own: Rank, start: str) -> None:
    missing, late = set(range(1, own.size)), time.monotonic() + own.deadline
    while missing:
        for number in sorted(missing):
            if store.check([_called(number)]):
                # Perhaps an earlier start's call: nobody waits for an answer to that name now.
                store.set(_answered(store.get(_called(number)).decode()), start)
            if store.check([_known(start, number)]):
                missing.remove(number)
        if missing and time.monotonic() > late:
            raise SemisyncError(
                f"process {min(missing)} of {own.size} did not come in {own.deadline:.0f} s; start "
                "all of them, with --resume"
            )
        time.sleep(_PAUSE)


def _called(number: int) -> str:
    return f"semisync/called/{number}"


def _answered(name: str) -> str:
    return f"semisync/answered/{name}"


def _known(start: str, number: int) -> str:
    return f"semisync/known/{start}/{number}"
