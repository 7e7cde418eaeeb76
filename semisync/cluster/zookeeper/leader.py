"""Leadership: a lease in one node, with an epoch that grows with every leader.

The node ROOT/leader is never removed. Its value is JSON: `epoch`, and while somebody leads `id`,
`name` and `lease` (seconds). All writes name the version that they replace.

1. A candidate reads the node from time to time. When its version has not changed for 1.5 x `lease`
   of the candidate's own clock, or nobody leads, it writes itself with the next epoch. Of several
   candidates one succeeds.
2. The leader writes the node again every third of a lease. It leads until `lease` seconds after it
   *sent* the last write that was acknowledged, and no longer.
3. Writes that only a leader may make go into one transaction with the next write of the node
   (`publish`). A leader whose node was written by another publishes nothing, whatever it believes.
4. A leader that leaves says so in the node, and the next one need not wait.

Why never two lead at one instant: a candidate's count begins when it has *seen* a write, so after
the leader has sent it, and lasts 1.5 times as long. This holds as long as no clock runs 1.5 times
as fast as another. The clock is the one that runs on while the machine sleeps. A process that is
stopped between asking for `epoch` and acting upon it may act late; `publish` then refuses.

The session plays no part: losing it changes nothing before the lease ends, and a new leader comes
within two leases although sessions last longer.
"""

import contextlib
import json
import threading
import time
from typing import Callable, NamedTuple, Optional, Sequence

from semisync.cluster.zookeeper.client import (
    BadVersion,
    Client,
    NodeExists,
    NoNode,
    Operation,
    Put,
    StoreError,
    Unavailable,
)
from semisync.cluster.zookeeper.values import foreign, read_object
from semisync.common.errors import BadInput, SemisyncError

LEASE = 0.8  # seconds
PATIENCE = 1.5  # leases without a write after which a candidate takes over


class Deposed(SemisyncError):
    """This process does not lead, or no longer."""


def boot_clock() -> float:
    """Seconds since the machine started, including the time that it slept."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class _Term(NamedTuple):
    """A leader's knowledge of its own term: the node's version, and when it was last confirmed."""

    epoch: int
    version: int
    confirmed: float


class Election(threading.Thread):
    """Stands for election from `start` to `resign`.

    Args:
        client: a `Client`.
        root: path of the job.
        id: of this process, which no other has.
        name: of this member, for people.
        lease: seconds.
        clock: a function that returns seconds.
        won: called, in the thread of the election, when this process begins to lead.

    Raises:
        BadInput, Unavailable: see `Client.own`.
    """

    def __init__(
        self,
        client: Client,
        root: str,
        id: str,
        name: str,
        lease: float = LEASE,
        clock: Callable[[], float] = boot_clock,
        won: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(name="semisync-election", daemon=True)
        client.own(root)
        self._client = client
        self._path = root + "/leader"
        self._about = {"id": id, "name": name, "lease": lease}
        self._lease = lease
        self._clock = clock
        self._won = won
        self._lock = threading.Lock()  # held while `_term` is changed
        self._term: Optional[_Term] = None
        self._seen: Optional[int] = None  # the last version seen of another's node
        self._since = 0.0
        self._done = threading.Event()
        self._failure: Optional[BadInput] = None  # that ended the thread

    @property
    def epoch(self) -> Optional[int]:
        """The epoch in which this process leads; None while it does not.

        Every leader has a greater one than those before: a token to fence other systems with.

        Raises:
            BadInput: the leader's node does not hold what a leader writes, and nobody can lead.
        """
        if self._failure is not None:
            raise self._failure
        # Read once, since another thread may replace it meanwhile.
        term = self._term
        if term is None or self._clock() >= term.confirmed + self._lease:
            return None
        return term.epoch

    def publish(self, operations: Sequence[Operation]) -> None:
        """Does all of the operations, or none where another leads.

        Raises:
            Deposed: nothing was done.
            Unavailable: it is not known whether they were done; this process leads no longer.
        """
        with self._lock:
            if self.epoch is None:
                raise Deposed("{} does not lead".format(self._about["name"]))
            self._write(self._term, operations)

    def resign(self) -> None:
        """Leaves the election and gives up leadership."""
        self._done.set()
        with self._lock:
            term, self._term = self._term, None
            if term is not None:
                vacant = json.dumps({"epoch": term.epoch}).encode()
                with contextlib.suppress(StoreError):  # the others wait until the lease is over
                    self._client.put(self._path, vacant, term.version)
        if self.is_alive() and self is not threading.current_thread():
            self.join()

    def run(self):
        wait = 0.0
        while not self._done.wait(wait):
            try:
                wait = self.step()
            except StoreError:
                wait = self._lease / 3
            except BadInput as error:
                self._failure = error
                return

    def step(self) -> float:
        """Looks, renews or takes over once; returns after how many seconds to do so again."""
        with self._lock:
            if self._done.is_set():
                return 0.0
            if self._term is None:
                return self._look()
            try:
                self._write(self._term, [])
            except Deposed:
                return 0.0
            return self._lease / 3

    def _look(self):
        try:
            value, stat = self._client.get(self._path)
        except NoNode:
            self._make()
            value, stat = self._client.get(self._path)
        seat, now = read_object(self._path, value, epoch=int), self._clock()
        if "id" in seat and not isinstance(seat.get("lease"), (int, float)):
            raise foreign(self._path)
        # Counted by this process's clock alone, from when it saw the write: no clocks compared.
        if stat.version != self._seen:
            self._seen, self._since = stat.version, now
        left = self._since + PATIENCE * seat["lease"] - now if "id" in seat else 0.0
        if left > 0:
            return min(left, self._lease / 3)
        # Before the write: the lease must end here before any candidate counts it as over.
        sent = self._clock()
        try:
            taken = self._client.put(self._path, self._seat(seat["epoch"] + 1), stat.version)
        except BadVersion:
            return 0.0  # another was faster
        self._term = _Term(seat["epoch"] + 1, taken.version, sent)
        self._won()
        return self._lease / 3

    def _make(self):
        with contextlib.suppress(NodeExists):  # another was faster
            self._client.create(self._path, json.dumps({"epoch": 0}).encode())

    def _seat(self, epoch):
        return json.dumps(dict(self._about, epoch=epoch)).encode()

    def _write(self, term, operations):
        """Renews the lease, together with other operations."""
        sent = self._clock()
        renewal = Put(self._path, self._seat(term.epoch), term.version)
        try:
            self._client.commit([renewal, *operations])
        except Unavailable:
            self._term = None  # perhaps the node has changed, and perhaps not
            raise
        except (BadVersion, NoNode):
            if self._still_ours(term):
                raise  # it was one of the other operations
            self._term = None
            raise Deposed("{} leads no longer".format(self._about["name"])) from None
        self._term = _Term(term.epoch, term.version + 1, sent)

    def _still_ours(self, term):
        stat = self._client.stat(self._path)
        return stat is not None and stat.version == term.version
