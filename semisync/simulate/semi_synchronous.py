"""Semi-synchronous training: the chief's own `Ledger`, in simulated time.

The workers and the chief exchange the kinds in `semisync.transport.messages`, in the order in which
`semisync.worker.operations` and `semisync.chief.thread` do; tickets, fates and weights are those of
the ledger and of the staleness policy that a real job runs. Nobody dies: the ledger's patience is
not reached.
"""

import collections
from typing import Any, Deque, Dict, List

import numpy as np

from semisync import pacing
from semisync.chief.ledger import Ledger
from semisync.fate import of_weight
from semisync.simulate.job import Job
from semisync.staleness import PROBES, fresh_steps
from semisync.transport.messages import DRAWN, JOINED, STAGED, WITHHELD, Message

_PUBLISH_EVERY = 1.0  # seconds, of `semisync.chief.thread`


class SemiSyncJob(Job):
    """See the module.

    Args:
        batches_per_step, in_flight, keep_stale: of the `Ledger`; in_flight may be `MeanStaleness`.
        paced: True for the mode "sync".
        staleness: the staleness policy, one of `semisync.staleness`, or None.
    """

    overhead = True

    def __init__(self, cluster, seed, batches_per_step, staleness, keep_stale, in_flight, paced):
        super().__init__(cluster, seed)
        self._policy = staleness
        self._weights: Dict[int, float] = {}
        self._fresh_steps = fresh_steps(self._weigh(PROBES))
        bound = pacing.by_staleness(in_flight)
        paced = pacing.checked(bound or paced)
        self.ledger = Ledger(
            batches_per_step,
            paced=pacing.paced_at(paced, 0),
            ahead=pacing.ahead(paced, batches_per_step),
            in_flight=None if bound else in_flight,
            keep_stale=keep_stale,
            patience=float("inf"),
            first=0,
            now=lambda: self.clock.now,
        )
        self._tickets: Deque[int] = collections.deque()
        self._waiting: Deque[Any] = collections.deque()
        self._inbox: List[Message] = []
        self._wanted = None  # messages that the chief waits for; None: it is busy
        self._fresh_for = 0.0
        self._published = 0.0, 0  # when, and at which version

    def start(self):
        for worker in self.workers:
            self.ledger.receive(Message(_name(worker), JOINED, 0, 0, 0))
            self.clock.after(self.first(worker), self._next, worker)
        self._exchange()

    # A worker. Paced, it draws its ticket once it has its rows; else before that, with the message
    # of the last batch, so that it need not wait for the ticket.

    def _next(self, worker):
        if self.ledger.paced:
            self.begin(worker)
        else:
            self._draw(worker, self.begin, worker)

    def ready(self, worker, demand):
        if self.ledger.paced:
            self._draw(worker, self.read, worker, demand)
        else:
            self.read(worker, demand)

    def _draw(self, worker, then, *arguments):
        worker.begun = self.clock.now
        self._waiting.append((worker, then, arguments))
        self._hand_out()

    def _hand_out(self):
        while self._waiting and self._tickets:
            worker, then, arguments = self._waiting.popleft()
            ticket = self._tickets.popleft()
            kind, last, token, ago = worker.untold or (DRAWN, worker.ticket, 0, 0)
            waited = self.clock.now - worker.begun
            self.waiting += waited
            worker.ticket, worker.token, worker.waited = ticket, self.version, int(1e6 * waited)
            worker.due = self.clock.now + self._fresh_for
            worker.untold = None
            self._post(Message(_name(worker), kind, last, token, ago, ticket))
            then(*arguments)

    def computed(self, worker):
        if self.clock.now > worker.due and self._policy is not None:
            self.clock.after(2 * self.costs.latency, self._judge, worker)
        else:
            super().computed(worker)

    def _judge(self, worker):
        if self._weigh([self.version - worker.token])[0] == 0:
            self._tell(worker, WITHHELD)
        else:
            super().computed(worker)

    def sent(self, worker):
        self.hold(1)
        self._tell(worker, STAGED)

    def _tell(self, worker, kind):
        told = kind, worker.ticket, worker.token, worker.waited
        if self.ledger.rations:
            self._post(Message(_name(worker), *told))
        else:
            worker.untold = told
        self._next(worker)

    # The chief

    def _post(self, message):
        self._inbox.append(message)
        self._look()

    def _exchange(self):
        self._issue(self.ledger.tickets_due(len(self._tickets)))
        self._wanted = self.ledger.lacking
        self._look()

    def _issue(self, count):
        self._tickets.extend(self.ledger.issue(count))
        self.ledger.drain("events")
        self._hand_out()

    def _look(self):
        if self._wanted is not None and len(self._inbox) >= self._wanted:
            self._wanted = None
            messages, self._inbox = self._inbox, []
            self.clock.after(self.costs.latency, self._took, messages)

    def _took(self, messages):
        for message in messages:
            self.ledger.receive(message)
        self._publish()
        weighed = self.ledger.next_global_batch(self.version, self._weigh)
        if not weighed:
            self._count_dropped()
            # A chief that found nothing to wait for asks again, which takes a message each way.
            self.clock.after(self.costs.latency, self._exchange)
            return
        self.ledger.book(self.version, weighed)
        self.ledger.drain("settled")
        chief = self.costs.chief_step + self.costs.chief * len(weighed)
        self.machines.on_worker(chief, self._apply, weighed)

    def _apply(self, weighed):
        seconds = self.costs.apply_step + self.costs.apply * len(weighed)
        self.machines.on_servers(seconds, self._step, weighed)

    def _step(self, weighed):
        self.version += 1
        for entry in weighed:
            self.applied(entry.staleness, of_weight(entry.weight).name.lower())
        self.hold(-sum(not entry.commit.withheld for entry in weighed))
        if not self.ledger.rations:  # in the run that applies, as the chief does
            self._issue(self.ledger.tickets_due(len(self._tickets)))
        self._exchange()

    def _count_dropped(self):
        dropped = len(self.ledger.drain("settled"))
        self.fates["dropped"] += dropped
        self.hold(-dropped)

    def _publish(self):
        since, version = self._published
        passed = self.clock.now - since
        if passed >= _PUBLISH_EVERY:
            steps = self.version - version
            self._fresh_for = passed / steps * self._fresh_steps if steps else 0.0
            self._published = self.clock.now, self.version

    def _weigh(self, staleness):
        new = sorted(set(staleness) - set(self._weights))
        if new:
            policy = self._policy or np.ones_like
            weights = policy(np.array(new, np.float32))
            self._weights.update(zip(new, weights.tolist()))
        return [self._weights[one] for one in staleness]


def _name(worker):
    return "worker {}".format(worker.number)
