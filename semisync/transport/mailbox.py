"""The mailbox: two queues on the global step's PS through which tickets and messages pass.

    tickets   int64 []       chief -> workers, each number once
    messages  string [],     workers -> chief: member,
              int64 [5],     kind, ticket, token, waited, session
              int64 []       drawn

`semisync.transport.messages` lists the kinds. Only the chief takes messages. It waits on the
parameter server until the requested number is there. A worker waits in one place only: for a
ticket.
"""

from typing import Any, List, NamedTuple

from semisync.common.compat import tf
from semisync.transport.messages import BATCH, NEVER_DRAWN, WAKE, Message


class Taken(NamedTuple):
    """The result of a run of `MailboxOps.take`.

    Attributes:
        messages: list of `Message`, of workers only.
        undrawn: how many tickets are in the queue.
        epoch: of the job state.
    """

    messages: List[Message]
    undrawn: int
    epoch: int


def taken(value):
    """The value of `MailboxOps.take` as a `Taken`."""
    messages, (undrawn, epoch) = unpacked(value, 2)
    return Taken(messages, undrawn, epoch)


def packed(messages, numbers):
    """Messages and numbers as strings, one tensor, since every tensor that is fetched has a cost.

    Args:
        messages: list of (members string [n], batches int64 [n, BATCH], drawn int64 [n]).
        numbers: list of int64 scalars.
    """
    members, batches, drawn = zip(*messages)
    flat = [tf.reshape(batch, [-1]) for batch in batches] + list(drawn) + [tf.stack(numbers)]
    return tf.concat(list(members) + [tf.as_string(tf.concat(flat, 0))], 0)


def unpacked(value, count):
    """The value of `packed`: the list of `Message`, of workers only, and `count` numbers."""
    # Per message its member, BATCH numbers and `drawn`, each a string; see `packed`.
    size = (len(value) - count) // (BATCH + 2)
    numbers = [int(number) for number in value[size:]]
    drawn = numbers[BATCH * size :]
    told = []
    for i in range(size):
        kind, ticket, token, waited, session = numbers[BATCH * i : BATCH * (i + 1)]
        told.append(Message(value[i].decode(), kind, ticket, token, waited, drawn[i], session))
    return [message for message in told if message.kind != WAKE], drawn[size:]


class MailboxOps(NamedTuple):
    """The ops that the chief runs on the mailbox.

    Attributes:
        request: placeholder, int64 [1 + n]: `at_least`, and new tickets; by default M and none. One
            vector, since every tensor that is fed has a cost.
        take: issues the new tickets, waits for `at_least` messages and takes every one that is
            there; its value is for `taken`. Never with a deadline: messages would be lost.
        wake: the op that sends as many WAKEs as a chief may wait for messages.
        withdraw: every ticket that is in the queue. May wait for a ticket that a worker has drawn
            meanwhile: run it with a deadline.
    """

    request: Any
    take: Any
    wake: Any
    withdraw: Any


class Mailbox:
    """The two queues, for one optimizer of one graph.

    Args:
        name: shared by all processes of the job; two optimizers of one graph have two names.
        device: of the global step.
    """

    def __init__(self, name, device):
        self.device = device
        with tf.device(device):
            # A capacity of -1 is unbounded: to send never waits.
            self._tickets = tf.FIFOQueue(-1, [tf.int64], [[]], shared_name=name + "/tickets")
            self._messages = tf.FIFOQueue(
                -1,
                [tf.string, tf.int64, tf.int64],
                [[], [BATCH], []],
                shared_name=name + "/messages",
            )

    def issue(self, tickets):
        """Returns the op that hands out tickets, int64 [n]."""
        with tf.device(self.device):
            return self._tickets.enqueue_many([tickets], name="issue")

    def wake(self, size):
        """The op that ends a chief's wait for messages, at global batches of `size`.

        No chief waits for more than two messages per batch, see `Ledger.lacking`.
        """
        with tf.device(self.device):
            count = 2 * size
            drawn = tf.fill([count], tf.constant(NEVER_DRAWN, tf.int64))
            wakes = tf.fill([count, BATCH], tf.constant(WAKE, tf.int64))
            return self._messages.enqueue_many([tf.fill([count], ""), wakes, drawn], name="wake")

    def withdraw(self):
        """Returns every ticket that is in the queue, int64 [n]; see `MailboxOps`."""
        with tf.device(self.device):
            return self._tickets.dequeue_many(self._tickets.size(), name="withdraw")

    def take(self):
        """Returns every message in the queue, for `packed`."""
        with tf.device(self.device):
            return self._messages.dequeue_many(self._messages.size(), name="take")

    def chief_ops(self, size, job_state):
        """The `MailboxOps`.

        Args:
            size: M.
            job_state: the `JobState`.
        """
        with tf.device(self.device):
            request = tf.placeholder_with_default(tf.constant([size], tf.int64), [None], "request")
            at_least = tf.cast(request[0], tf.int32)
            with tf.control_dependencies([self.issue(request[1:])]):
                awaited = self._messages.dequeue_many(at_least, name="await")
            with tf.control_dependencies(awaited):
                more = self.take()
                undrawn = tf.cast(self._tickets.size(name="undrawn"), tf.int64)
                epoch = job_state.read_epoch()
            return MailboxOps(
                request=request,
                take=packed([awaited, more], [undrawn, epoch]),
                wake=self.wake(size),
                withdraw=self.withdraw(),
            )

    def draw(self):
        """Waits for a ticket; returns it and how long that took in us, int64 scalars."""
        with tf.device(self.device):
            before = tf.timestamp()  # on the PS, as the one after it: one clock, and no trip counts
            with tf.control_dependencies([before]):
                ticket = self._tickets.dequeue(name="draw")
            with tf.control_dependencies([ticket]):
                return ticket, tf.cast((tf.timestamp() - before) * 1e6, tf.int64)

    def send(self, member, batch, drawn=NEVER_DRAWN):
        """The op that sends one message to the chief.

        Args:
            member: the sender, a string.
            batch: kind, ticket, token, waited, session: an int64 tensor [BATCH].
            drawn: int64.
        """
        with tf.device(self.device):
            return self._messages.enqueue([member, batch, drawn], name="send")
