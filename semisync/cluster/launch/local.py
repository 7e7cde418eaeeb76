"""A whole job on this machine, without ZooKeeper: its launchers are threads of one process."""

import concurrent.futures

from semisync.cluster.job.places import index_of, role_of
from semisync.cluster.launch import codes
from semisync.cluster.launch.member import Launcher
from semisync.cluster.launch.order import Order
from semisync.cluster.zookeeper import memory

ROOT = "/semisync/local"
HOST = "127.0.0.1"


class LocalJob:
    """One launcher for every place.

    Args:
        order: an `Order`; `role`, `number` and `host` are the places' own.
        restarts: a function of a role.
    """

    def __init__(self, order, restarts):
        tree = memory.Tree()
        self._launchers = [
            Launcher(memory.Client(tree), ROOT, _placed(order, name, restarts))
            for name in order.shape.places
        ]

    def stop(self, signal):
        """Ends every process."""
        for launcher in self._launchers:
            launcher.stop(signal)

    def run(self):
        """Runs the job; returns its exit code."""
        with concurrent.futures.ThreadPoolExecutor(len(self._launchers)) as pool:
            ends = list(pool.map(self._run, self._launchers))
        failed = {end.code for end in ends if end.code}
        return codes.COMMAND_FAILED if codes.COMMAND_FAILED in failed else max(failed, default=0)

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
    return order._replace(role=role, number=index_of(name), host=HOST, restarts=restarts(role))
