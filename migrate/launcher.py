"""This process's settings from its launcher: its rank, and the number of processes.

torchrun sets RANK and WORLD_SIZE, and where rank 0 is or its own run id; an operator such as
Kubeflow's sets the same for a pod without torchrun. RANK and WORLD_SIZE alone may be there for any
other reason, and a process that trusted them would wait for ranks that were never started. A
process that one of several nodes runs for itself, without torchrun, would do all of the work on
each of them, over the others' files: it is refused.

Its control groups limit how many processors it may use.
"""

from __future__ import annotations

import os
import pathlib
from typing import Iterator, NamedTuple

from semisync.common.errors import UsageError

_FILES = {  # by the controller: those of the quota and of the period, in microseconds
    "": ("cpu.max",),
    "cpu": ("cpu.cfs_quota_us", "cpu.cfs_period_us"),
    "cpu,cpuacct": ("cpu.cfs_quota_us", "cpu.cfs_period_us"),
}
DEADLINE = 600.0
_LAUNCHERS = (("TORCHELASTIC_RUN_ID",), ("MASTER_ADDR", "MASTER_PORT"))  # torchrun sets all


class Rank(NamedTuple):
    """This process's rank, their number, and its patience with silent ones, in seconds."""

    number: int = 0
    size: int = 1
    deadline: float = DEADLINE


ALONE = Rank()


def from_environment(deadline: float = DEADLINE) -> Rank:
    """RANK of WORLD_SIZE, as torchrun sets them; raises UsageError if they make no sense, or if
    only a part of what a launcher sets says that there are other processes."""
    rank, count = os.environ.get("RANK"), os.environ.get("WORLD_SIZE")
    if rank is None or count is None:
        _check_alone(rank)
        return ALONE
    if count != "1" and not any(set(names) <= set(os.environ) for names in _LAUNCHERS):
        raise UsageError(
            f"RANK is {rank!r} and WORLD_SIZE {count!r}, but no launcher has set "
            f"{' or '.join(' and '.join(names) for names in _LAUNCHERS)}; unset both to work "
            "with this process alone, or start the ranks with torchrun"
        )
    if not (rank.isdecimal() and count.isdecimal() and int(rank) < int(count)):
        raise UsageError(
            f"RANK is {rank!r} and WORLD_SIZE {count!r}, expected 0 <= RANK < WORLD_SIZE; unset "
            "both to work with this process alone"
        )
    return Rank(int(rank), int(count), deadline)


def _check_alone(rank: object) -> None:
    """Raises UsageError if a process without WORLD_SIZE or RANK is one of several all the same."""
    if rank is not None:
        raise UsageError(
            f"RANK is {rank!r}, and there is no WORLD_SIZE: set it to the number of processes, or "
            "unset RANK to work with this process alone"
        )
    # torchrun takes its options from PET_ variables, as Kubeflow's operator sets them: NODES, or
    # LEAST:MOST.
    nodes = os.environ.get("PET_NNODES", "1")
    if nodes.rpartition(":")[2] != "1":
        raise UsageError(
            f"PET_NNODES is {nodes!r}, but torchrun did not start this process, and each node "
            "would do all the work: run `torchrun -m semisync` instead of `semisync`, or unset it"
        )


def usable(root: str = "/") -> int:
    """How many processors the process may use: those it is bound to, within its container's quota.

    Args:
        root: of the file system that describes the container, with proc and sys/fs/cgroup.

    Source: https://docs.kernel.org/admin-guide/cgroup-v2.html
    """
    if hasattr(os, "sched_getaffinity"):
        bound = len(os.sched_getaffinity(0))
    else:
        bound = os.cpu_count() or 1
    quotas = [quota for quota in _quotas(pathlib.Path(root)) if quota > 0]
    return max(1, min([bound, *(int(quota) for quota in quotas)]))


def _quotas(root: pathlib.Path) -> Iterator[float]:
    """The processors' worth that each group of the process may use; -1 for all."""
    try:
        groups = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:  # no Linux
        return
    for group in groups:
        _, controller, path = group.split(":", 2)
        if controller not in _FILES:
            continue
        top = root / "sys/fs/cgroup" / controller
        inner = top / path.strip("/")
        # A group has at most what the groups above it have.
        for place in (inner, *inner.parents):
            try:
                words = " ".join((place / name).read_text() for name in _FILES[controller]).split()
                yield -1 if words[0] == "max" else float(words[0]) / float(words[1])
            except (OSError, ValueError, IndexError):  # the topmost has none
                pass
            if place == top:
                break
