"""Launchers in threads of the test, which run small commands."""

import signal
import threading

from semisync.cluster.launch.member import Launcher
from semisync.cluster.launch.order import Order
from semisync.common.errors import SemisyncError
from tests.support.waiting import until

ROOT = "/job"
PLACE = {"host": "127.0.0.1"}
SLEEP = ["sleep", "1000"]


class Job:
    """Starts launchers in threads; `ends` has how they ended."""

    def __init__(self, store, shape, folder):
        self._store, self._shape, self.folder = store, shape, folder
        self.launchers, self.clients, self.ends, self._threads = {}, {}, {}, []

    def launch(
        self,
        role,
        command,
        number=None,
        restarts=0,
        deadline=60.0,
        linger=60.0,
        shape=None,
        key=None,
        **more,
    ):
        """Starts a launcher, known as `key`."""
        key = key or "{} {}".format(role, number)
        order = Order(
            shape or self._shape,
            role,
            number,
            command,
            restarts,
            deadline,
            5.0,
            linger,
            **dict(PLACE, **more),
        )
        client = self.clients[key] = self._store.client()
        launcher = self.launchers[key] = Launcher(client, ROOT, order)

        def run():
            try:
                self.ends[key] = launcher.run()
            except SemisyncError as error:
                self.ends[key] = error

        self._threads.append(threading.Thread(target=run, daemon=True))
        self._threads[-1].start()

    def ended(self, key):
        return until(lambda: self.ends.get(key))

    def write(self, name, then):
        """A command that adds a line to a file, and what it does then."""
        return ["sh", "-c", 'echo "$TF_CONFIG" >> {}; {}'.format(self.folder / name, then)]

    def lines(self, name):
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []

    def stop(self):
        for launcher in self.launchers.values():
            launcher.stop(signal.SIGTERM)
        for thread in self._threads:
            thread.join()
