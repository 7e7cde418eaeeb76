"""Where the library's own ops run."""

import re

_KIND = re.compile("/(device:)?[CG]PU:.*", re.IGNORECASE)


def on_cpu(device):
    """The CPU of the process that a device string names, which may be "" for this process.

    The library's own ops hold strings and counters: strings have no GPU kernel.
    """
    return _KIND.sub("", device) + "/device:CPU:0"
