"""Waiting for what must happen, in tests; the deadline is there against hangs alone."""

import time

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
