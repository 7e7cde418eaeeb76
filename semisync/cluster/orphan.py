"""A process of a local cluster ends with the one that started it, even if that one was killed."""

import os
import threading
import time

LOOK_EVERY = 1.0  # seconds


def end_with_parent(parent):
    """Watches the parent, a process id, in a thread; when it is gone, so is this process.

    The id is the one that the parent gave: by now another process may have taken the child over.
    """

    def watch():
        while os.getppid() == parent:
            time.sleep(LOOK_EVERY)
        os._exit(1)

    threading.Thread(target=watch, name="semisync-orphan", daemon=True).start()
