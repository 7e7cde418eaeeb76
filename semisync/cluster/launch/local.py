"""A whole job on this machine, without ZooKeeper: its launchers are threads of one process.

Nobody else can publish its configuration: the file itself is looked at, and published when it has
changed.
"""

import concurrent.futures
import threading

from semisync.cluster.files import configurations
from semisync.cluster.launch.member import Launcher
from semisync.cluster.launch.order import Order
from semisync.cluster.launch.shipment import read_config
from semisync.cluster.record import index_of, role_of
from semisync.cluster.zookeeper import memory
from semisync.common.errors import BadInput

ROOT = "/semisync/local"
HOST = "127.0.0.1"
LOOK_EVERY = 0.5  # seconds


class LocalJob:
    """One launcher for every place.

    Args:
        order: an `Order`; `role`, `number` and `host` are the places' own.
        restarts: a function of a role.
    """

    def __init__(self, order, restarts):
        self._config, self._places = order.config, order.shape.places
        tree = self._tree = memory.Tree()
        self._launchers = [
            Launcher(memory.Client(tree), ROOT, _placed(order, name, restarts))
            for name in order.shape.places
        ]

    def stop(self, signal):
        """Ends every process."""
        for launcher in self._launchers:
            launcher.stop(signal)

    def run(self):
        """Runs the job; returns how each launcher ended, an `End` by place."""
        over = threading.Event()
        with concurrent.futures.ThreadPoolExecutor(len(self._launchers) + 1) as pool:
            if self._config is not None:
                pool.submit(self._watch_config, over)
            try:
                ends = list(pool.map(self._run, self._launchers))
            finally:
                over.set()
        return dict(zip(self._places, ends))

    def _watch_config(self, over):
        """Publishes the configuration file's contents whenever they change."""
        client, said = memory.Client(self._tree), None
        known = read_config(self._config)
        while not over.wait(LOOK_EVERY):
            try:
                found = read_config(self._config)
                if found != known:
                    configurations.publish(client, ROOT, found, configurations.latest(client, ROOT))
                known, said = found, None
            except BadInput as error:  # it is being written, perhaps
                if str(error) != said:
                    self._launchers[0].output.say("warning: {}".format(error))
                said = str(error)

    def _run(self, launcher):
        try:
            end = launcher.run()
        except BaseException:
            self.stop(0)
            raise
        if end.code:
            launcher.output.say(end.why)
        return end


def _placed(order, name, restarts) -> Order:
    role = role_of(name)
    placed = order._replace(role=role, number=index_of(name), host=HOST, restarts=restarts(role))
    return placed if name == order.shape.chief_place else placed._replace(ship=(), config=None)
