"""What the cluster's processes use, and what the machine does besides, from /proc; see proc(5)."""

import collections
import os
import time

# `time` in seconds since the epoch; `ps`, `chief` and `workers`, CPU seconds so far of the PS, of
# the chief's process and of the other workers'; `rss`, resident bytes of the PS; `others`, CPU
# seconds so far of all on the machine that is not the cluster, with what a hypervisor took away.
Sample = collections.namedtuple("Sample", "time ps chief workers rss others")

_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def sample(ps, workers, cluster):
    """A `Sample`.

    Args:
        ps: ids of the parameter servers' processes.
        workers: ids of the workers' processes, the chief's first.
        cluster: ids of all processes of the cluster, these among them.
    """
    used = {pid: _cpu(pid) for pid in cluster}
    return Sample(
        time=time.time(),
        ps=sum(used[pid] for pid in ps),
        chief=used[workers[0]],
        workers=sum(used[pid] for pid in workers[1:]),
        rss=sum(map(_rss, ps)),
        others=_machine() - sum(used.values()),
    )


def _cpu(pid):
    with open(f"/proc/{pid}/stat") as stat:
        # The second field, the command in brackets, may hold blanks: count from its end.
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK  # utime, stime: fields 14 and 15


def _rss(pid):
    with open(f"/proc/{pid}/statm") as statm:
        return int(statm.read().split()[1]) * _PAGE


def _machine():
    """CPU seconds of all processors since the machine started, without idling."""
    with open("/proc/stat") as stat:
        user, nice, system, _, _, irq, softirq, steal = map(int, stat.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / _TICK
