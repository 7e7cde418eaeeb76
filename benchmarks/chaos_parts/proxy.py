"""A process between a launcher and ZooKeeper's servers, for machines without links of their own.

    python -m benchmarks.chaos_parts.proxy HOST:PORT,...

It prints the addresses that lead to them, and passes connections on. While it is stopped (SIGSTOP)
nothing comes through and nobody is told, as when a link is down.
"""

import sys
import threading

from semisync.cluster.launch.forward import Forwards


def main(hosts):
    addresses = hosts.split(",")
    forwards = Forwards(lambda address: address)
    print(",".join(map(forwards.address, addresses)), flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main(sys.argv[1])
