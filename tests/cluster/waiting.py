"""Waiting for what must happen, in tests; the deadline is there against hangs alone."""

import time

import psutil

DEADLINE = 180.0  # seconds


def until(condition, deadline=DEADLINE):
    """Waits until `condition()` is true; returns what it returned."""
    late = time.monotonic() + deadline
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < late, "{:.0f} s were not enough".format(deadline)
        time.sleep(0.01)


def running():
    """The numbers of the processes that run; one that has ended may still wait to be noticed."""
    processes = psutil.process_iter(["status"])
    return {each.pid for each in processes if each.info["status"] != psutil.STATUS_ZOMBIE}
