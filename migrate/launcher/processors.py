"""How many processors this process may use."""

from __future__ import annotations

import os
import pathlib
from typing import Iterator

_FILES = {  # by the controller: those of the quota and of the period, in microseconds
    "": ("cpu.max",),
    "cpu": ("cpu.cfs_quota_us", "cpu.cfs_period_us"),
    "cpu,cpuacct": ("cpu.cfs_quota_us", "cpu.cfs_period_us"),
}


def usable(root: str = "/") -> int:
    """How many there are: those that the process is bound to, and no more than its container has.

    Args:
        root: of the file system that tells of the container, with proc and sys/fs/cgroup.

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
        for place in (inner, *inner.parents):
            try:
                words = " ".join((place / name).read_text() for name in _FILES[controller]).split()
                yield -1 if words[0] == "max" else float(words[0]) / float(words[1])
            except (OSError, ValueError, IndexError):  # the topmost has none
                pass
            if place == top:
                break
