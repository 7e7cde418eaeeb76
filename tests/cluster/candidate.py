"""A candidate in a process of its own, which writes down when it led.

    python -m tests.cluster.candidate HOSTS NAME FILE SESSION_TIMEOUT [LEASE]

FILE gets lines `epoch instant`, of the clock that all processes of a machine share.
"""

import sys
import time

from semisync.cluster.zookeeper.connection import Connection
from semisync.cluster.zookeeper.leader import LEASE, Election, boot_clock

LOOK_EVERY = 0.002  # seconds


def main(hosts, name, file, session_timeout, lease=LEASE):
    client = Connection(hosts, float(session_timeout))
    election = Election(client, "/job", name, name, float(lease))
    election.start()
    with open(file, "w", buffering=1) as written:
        print("ready", file=written)
        while True:
            now = boot_clock()
            epoch = election.epoch
            if epoch is not None:
                print(epoch, now, file=written)
            time.sleep(LOOK_EVERY)


if __name__ == "__main__":
    main(*sys.argv[1:])
