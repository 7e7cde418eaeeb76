"""`semisync launch`, which writes down when its launcher leads.

    python -m benchmarks.chaos_parts.launcher FILE ARGUMENTS OF semisync launch

FILE gets lines `epoch instant`: see `tests.cluster.candidate`.
"""

import sys
import threading

from semisync import cli
from semisync.cluster.launch import member
from semisync.cluster.zookeeper.leader import Election
from tests.cluster.candidate import write_down

LOOK_EVERY = 0.005  # seconds


class WrittenDown(Election):
    """An election that a thread looks at all the time, as whoever acts for the leader may."""

    def start(self):
        super().start()
        file = open(sys.argv[1], "a", buffering=1)  # noqa: SIM115, as long as the process
        looking = threading.Thread(target=write_down, args=(self, file, LOOK_EVERY), daemon=True)
        looking.start()


if __name__ == "__main__":
    member.Election = WrittenDown
    sys.exit(cli.main(["launch", *sys.argv[2:]]))
