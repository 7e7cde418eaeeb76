"""Many followers on paper: the chunks of one file through links of one speed, event by event.

What is simulated, and how:

1. The choice of source and chunk is `semisync.cluster.files.choosing.choose` itself, the leases of
   the root `semisync.cluster.files.leases.Leases`, with its limits of requests and neighbours.
2. A node sends over one link and receives over another, each of --link megabits per second. Chunks
   that leave a node queue at its link, and those that reach a node at its own; a chunk takes
   size / link in each, and is whole when it has passed both. That is a switch without contention
   between machines of equal links; latency, TCP and processors cost nothing.
3. A follower learns what its neighbours have as often as `Share.state` says: 0.3 s, a root of 1,000
   followers 5 s. It changes a neighbour every 10 s.

"Copies" is the time in units of one plain copy, size / link; log2(followers + 1) of them is what a
perfect doubling of whole files would need, 1 what perfect pipelining would.
"""

import heapq
import itertools
import math
import random
import statistics
import time

from semisync.cluster.files.choosing import AT_ONCE, OF_A_FOLLOWER, OF_A_ROOT, choose
from semisync.cluster.files.download import NEIGHBOURS
from semisync.cluster.files.leases import Leases
from semisync.cluster.files.manifest import CHUNK_SIZE
from semisync.cluster.files.share import SOONEST

CHANGE_SECONDS = 10.0


class View:
    """A source as one follower sees it."""

    def __init__(self, node, is_root):
        self.node, self.is_root = node, is_root
        self.have, self.busy = 0, 0

    @property
    def free(self):
        return self.busy < (OF_A_ROOT if self.is_root else OF_A_FOLLOWER)


class Node:
    def __init__(self, number):
        self.number = number
        self.have = self.asked = 0
        self.sends_at = self.receives_at = 0.0
        self.sent = 0
        self.views = {}
        self.done = None


class Swarm:
    """Runs until every follower has everything.

    Args:
      chunks: their number.
      followers: their number.
      seconds: that a chunk takes on one link.
      seed: of every choice.
    """

    def __init__(self, chunks, followers, seconds, seed):
        self.now, self._events, self._order = 0.0, [], itertools.count()
        self._dice, self._seconds, self._all = random.Random(seed), seconds, (1 << chunks) - 1
        self._leases = Leases(lambda: self.now)
        self.root = Node(0)
        self.root.have = self._all
        self.followers = [Node(number + 1) for number in range(followers)]
        self._again = max(SOONEST, followers / 200.0)
        self.refused = 0

    def run(self):
        for node in self.followers:
            node.views[0] = View(self.root, True)
            self._at(self._dice.uniform(0, 0.1), self._look, node, 0)
            self._at(CHANGE_SECONDS * self._dice.uniform(0.5, 1.5), self._change, node)
        left = len(self.followers)
        while left:
            self.now, _, act, arguments = heapq.heappop(self._events)
            left -= act(*arguments) or 0
        return self

    def _at(self, when, act, *arguments):
        heapq.heappush(self._events, (when, next(self._order), act, arguments))

    def _look(self, node, number):
        """A follower asks a source for its state."""
        view = node.views.get(number)
        if view is None or node.done is not None:
            return
        again = SOONEST
        view.have = view.node.have
        if view.is_root:
            again = self._again
            self._leases.hear(str(node.number))
            view.have &= ~self._leases.on_lease(str(node.number))
        self._meet(node)
        self._ask(node)
        self._at(self.now + again * self._dice.uniform(0.75, 1.25), self._look, node, number)

    def _meet(self, node):
        while len(node.views) <= min(NEIGHBOURS, len(self.followers) - 1):
            other = self._dice.choice(self.followers)
            if other is not node and other.number not in node.views:
                node.views[other.number] = View(other, False)
                self._at(self.now + 0.01, self._look, node, other.number)

    def _change(self, node):
        idle = [number for number, view in node.views.items() if number and not view.busy]
        if idle and node.done is None:
            del node.views[self._dice.choice(idle)]
            self._meet(node)
            self._at(self.now + CHANGE_SECONDS * self._dice.uniform(0.75, 1.25), self._change, node)

    def _ask(self, node):
        while bin(node.asked).count("1") < AT_ONCE:
            missing = self._all & ~node.have & ~node.asked
            found = choose(missing, node.views.values(), self._dice)
            if found is None:
                return
            view, chunk = found
            if view.is_root and not self._leases.grant(chunk, str(node.number)):
                view.have &= ~(1 << chunk)
                self.refused += 1
                continue
            view.busy += 1
            node.asked |= 1 << chunk
            sender = view.node
            begin = max(self.now, sender.sends_at)
            sender.sends_at = begin + self._seconds
            sender.sent += 1
            self._at(begin, self._send, node, view, chunk)

    def _send(self, node, view, chunk):
        """It begins to arrive as soon as it begins to be sent, and others have arrived."""
        node.receives_at = max(self.now, node.receives_at) + self._seconds
        self._at(node.receives_at, self._arrive, node, view, chunk)

    def _arrive(self, node, view, chunk):
        view.busy -= 1
        node.asked &= ~(1 << chunk)
        node.have |= 1 << chunk
        if node.have == self._all:
            node.done = self.now
            return 1
        self._ask(node)
        return 0


def report(gigabytes, followers, megabits, seed=0):
    """Prints a Markdown table."""
    chunks = math.ceil(gigabytes * 1e9 / CHUNK_SIZE)
    seconds = CHUNK_SIZE * 8 / megabits / 1e6
    plain = chunks * seconds
    began = time.perf_counter()
    swarm = Swarm(chunks, followers, seconds, seed).run()
    done = [node.done for node in swarm.followers]
    sent = [node.sent / chunks for node in swarm.followers]
    print(f"simulated: {gigabytes:g} GB to {followers} followers, links of {megabits} Mbit/s\n")
    print("| | |\n|---|---|")
    print(f"| one plain copy | {plain:.0f} s |")
    print(f"| the last follower | {max(done):.0f} s, {max(done) / plain:.2f} copies |")
    print(f"| the median follower | {statistics.median(done):.0f} s |")
    print(f"| copies from the root | {swarm.root.sent / chunks:.2f} |")
    print(f"| copies from a follower, mean, most | {statistics.mean(sent):.2f}, {max(sent):.2f} |")
    print(f"| requests refused by the root | {swarm.refused} |")
    print(f"| all followers straight from the root | {followers * plain / 3600:.1f} h |")
    print(f"\nsimulated in {time.perf_counter() - began:.0f} s")
