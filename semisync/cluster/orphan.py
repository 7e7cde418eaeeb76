"""A process of a local cluster ends with its parent, even if the parent was killed."""

import os
import threading
import time

POLL_SECONDS = 1.0


def end_with_parent(parent):
    """Ends this process when the parent ends; a thread polls for that.

    Args:
        parent: the process id that the parent passed on. os.getppid() will not do: by now another
            process may have adopted this one.
    """

    def watch():
        while os.getppid() == parent:
            time.sleep(POLL_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, name="semisync-orphan", daemon=True).start()
