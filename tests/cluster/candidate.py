"""A candidate in a process of its own, which writes down when it led.

    python -m tests.cluster.candidate HOSTS NAME FILE SESSION_TIMEOUT [LEASE]

FILE gets lines `epoch instant`, of the clock that all processes of a machine share.
"""

import sys
import time

from semisync.cluster.zookeeper.connection import Connection
from semisync.cluster.zookeeper.leader import LEASE, Election, boot_clock


def write_down(election, file, every=0.002):
    """Adds a line to a file whenever it finds that the election's process leads; never returns.

    The instant lies between two looks that found the same epoch: however long this process had to
    wait meanwhile, it led at that instant.
    """
    while True:
        epoch, instant = election.epoch, boot_clock()
        if epoch is not None and election.epoch == epoch:
            print(epoch, instant, file=file)
        time.sleep(every)


def main(hosts, name, file, session_timeout, lease=LEASE):
    client = Connection(hosts, float(session_timeout))
    election = Election(client, "/job", name, name, float(lease))
    election.start()
    with open(file, "w", buffering=1) as written:
        print("ready", file=written)
        write_down(election, written)


if __name__ == "__main__":
    main(*sys.argv[1:])
