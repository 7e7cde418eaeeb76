"""A call that may never return, as those of a TensorFlow session whose PS does not answer."""

import threading
from typing import Any


class BackgroundCall(threading.Thread):
    """A call in its own thread, which may never return.

    Attributes:
        result: the function's return value; None before.
        error: its exception; None before.
    """

    def __init__(self, function):
        super().__init__(name="semisync-call", daemon=True)
        self._function = function
        self.result: Any = None
        self.error: Any = None
        self.start()

    def wait(self, seconds):
        """Waits at most so long; returns True while the call has not returned."""
        self.join(seconds)
        return self.is_alive()

    def run(self):
        try:
            self.result = self._function()
        except Exception as error:
            self.error = error
