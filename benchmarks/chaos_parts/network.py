"""Machines with links of a known speed, on this machine: network namespaces at one bridge.

Each namespace has a link of its own, full duplex, limited in both directions by a token bucket
(tc tbf), as a switch port is; it can be pulled out. Needs root.
"""

import contextlib
import os
import subprocess
import time

_NETWORK = "10.213.{}.{{}}".format(os.getpid() % 256)  # two programs may do so at once


class Machine:
    """A namespace with an address; `prefix` starts commands that run in it."""

    def __init__(self, name, address):
        self.address = address
        self.prefix = ["ip", "netns", "exec", name]
        self._link = name + "h"

    def plug(self, is_in):
        """Pulls the link out, or puts it in again."""
        _ip("link", "set", self._link, "up" if is_in else "down")


def are_allowed():
    """Whether this process may make machines."""
    name = "ss{}t".format(os.getpid() % 100000)
    try:
        for words in (["netns", "add", name], ["link", "add", name, "type", "bridge"]):
            subprocess.run(["ip", *words], check=True, stderr=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError):
        return False
    finally:
        with contextlib.suppress(OSError):
            _remove(name, [name])
    return True


@contextlib.contextmanager
def machines(count, megabits):
    """Yields `count` machines with links of `megabits` per second, which this machine reaches."""
    mark = "ss{}".format(os.getpid() % 100000)
    made = []
    try:
        _ip("link", "add", mark, "type", "bridge")
        _ip("link", "set", mark, "up")
        _ip("addr", "add", _NETWORK.format(254) + "/24", "dev", mark)
        for number in range(count):
            made.append(_machine(mark, number, megabits))
        time.sleep(1.0)  # the bridge begins to forward
        yield made
    finally:
        # One more than were made: the last may have failed half-way.
        _remove(mark, [f"{mark}n{number}" for number in range(len(made) + 1)])


def _machine(mark, number, megabits):
    name, address = f"{mark}n{number}", _NETWORK.format(number + 1)
    _ip("netns", "add", name)
    _ip("link", "add", name + "h", "type", "veth", "peer", "name", "eth0", "netns", name)
    _ip("link", "set", name + "h", "master", mark, "up")
    _ip("-n", name, "addr", "add", address + "/24", "dev", "eth0")
    _ip("-n", name, "link", "set", "eth0", "up")
    _ip("-n", name, "link", "set", "lo", "up")
    bucket = f"root tbf rate {megabits}mbit burst 256kb latency 100ms".split()
    subprocess.run(["tc", "-n", name, "qdisc", "add", "dev", "eth0", *bucket], check=True)
    subprocess.run(["tc", "qdisc", "add", "dev", name + "h", *bucket], check=True)
    return Machine(name, address)


def _remove(bridge, names):
    for name in names:
        subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL)
    subprocess.run(["ip", "link", "del", bridge], stderr=subprocess.DEVNULL)


def _ip(*words):
    subprocess.run(["ip", *words], check=True)
