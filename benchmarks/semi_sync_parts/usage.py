"""The usage of the cluster's processes, and of the rest of the machine, by psutil."""

import collections
import time

import psutil

# `time` in seconds since the epoch; `ps`, `chief` and `workers`, CPU seconds so far of the PS, of
# the chief's process and of the other workers'; `rss`, resident bytes of the PS; `others`, CPU
# seconds so far of all on the machine that is not the cluster, with what a hypervisor took away.
Sample = collections.namedtuple("Sample", "time ps chief workers rss others")


def sample(ps, workers, cluster):
    """A `Sample`.

    Args:
        ps: ids of the parameter servers' processes.
        workers: ids of the workers' processes, the chief's first.
        cluster: ids of all processes of the cluster, these among them.
    """
    used = {pid: sum(psutil.Process(pid).cpu_times()[:2]) for pid in cluster}
    # A guest's time is in the user time, too (proc(5)).
    machine = psutil.cpu_times()
    return Sample(
        time=time.time(),
        ps=sum(used[pid] for pid in ps),
        chief=used[workers[0]],
        workers=sum(used[pid] for pid in workers[1:]),
        rss=sum(psutil.Process(pid).memory_info().rss for pid in ps),
        others=sum(machine) - machine.idle - machine.iowait - machine.guest - sum(used.values()),
    )
