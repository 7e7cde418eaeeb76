"""The memory that a step of a training frees is kept for the next one."""

from __future__ import annotations

import ctypes

# Of malloc.h: how much free memory at the heap's end is given back, and the size from which a block
# is mapped on its own, which glibc takes up to 32 MiB.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3


def keep_freed() -> None:
    """Has glibc keep what is freed, where it is the C library: it gives the tensors of a step back
    to the system, and the next step pays for each of their pages again."""
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(_TRIM_THRESHOLD, 2**31 - 1)
        set_option(_MMAP_THRESHOLD, 32 << 20)
