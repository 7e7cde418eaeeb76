"""The mailbox: two queues on the global step's PS through which tickets and messages pass.

    tickets   int64 []               chief -> workers, each number once
    messages  string [], int64 [5]   workers -> chief: member, (kind, ticket, token, waited, drawn)

    kind        meaning
    JOINED      a worker's session begins; only the kind counts
    DRAWN       the worker holds the ticket `drawn`; it has given up any other ticket
    STAGED      every PS holds its part of the batch; `waited` is how long the ticket took, in us
    WITHHELD    the batch was too stale when its gradient was ready, and was not sent
    LEFT        the worker's session ends; the ticket was not used
    DISAGREED   the worker's settings differ from the chief's; `member` says how
    WAKE        from the chief, to itself: stop waiting

`drawn` is NEVER_DRAWN or, with STAGED and WITHHELD too, the ticket that the worker holds next: a
batch costs one message.

The chief alone takes messages. It waits on the parameter server until as many are there as it wants
to hear of. A worker waits in one place only: for a ticket.
"""

from typing import Any, NamedTuple

from semisync.common.compat import tf

JOINED, DRAWN, STAGED, WITHHELD, LEFT, DISAGREED, WAKE = range(7)
NEVER_DRAWN = -1
NUMBERS = 5  # of a message


class Message(NamedTuple):
    """One message from a worker to the chief; see the module for its numbers."""

    member: str
    kind: int
    ticket: int
    token: int
    waited: int
    drawn: int = NEVER_DRAWN


def messages(taken):
    """The list of `Message` of workers in the value of `MailboxOps.take`."""
    rows = zip(taken[0], taken[1].tolist())
    told = [Message(member.decode(), *numbers) for member, numbers in rows]
    return [message for message in told if message.kind != WAKE]


class MailboxOps(NamedTuple):
    """What the chief runs on the mailbox.

    Attributes:
      new_tickets: placeholder, int64 [n].
      issue: the op that hands out `new_tickets`.
      at_least: placeholder, int32 []: how many messages `take` waits for.
      take: every message that is there, after `issue` and once there are `at_least`. Not with a
        deadline: messages would be lost.
      undrawn: how many tickets are in the queue, after `take`.
      wake: the op that sends `at_least` WAKEs.
      withdraw: every ticket that is in the queue. May wait for a ticket that a worker has drawn
        meanwhile: run it with a deadline.
    """

    new_tickets: Any
    issue: Any
    at_least: Any
    take: Any
    undrawn: Any
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
            self._tickets = tf.FIFOQueue(-1, [tf.int64], [[]], shared_name=name + "/tickets")
            self._messages = tf.FIFOQueue(
                -1, [tf.string, tf.int64], [[], [NUMBERS]], shared_name=name + "/messages"
            )

    def chief_ops(self):
        """Returns the `MailboxOps`."""
        with tf.device(self.device):
            new_tickets = tf.placeholder(tf.int64, [None], name="new_tickets")
            at_least = tf.placeholder(tf.int32, [], name="at_least")
            issue = self._tickets.enqueue_many([new_tickets], name="issue")
            # One run issues, waits, takes and counts.
            with tf.control_dependencies([issue]):
                awaited = self._messages.dequeue_many(at_least, name="await")
            with tf.control_dependencies(awaited):
                more = self._messages.dequeue_many(self._messages.size(), name="take")
                undrawn = self._tickets.size(name="undrawn")
            wakes = tf.fill([at_least, NUMBERS], tf.constant(WAKE, tf.int64))
            return MailboxOps(
                new_tickets=new_tickets,
                issue=issue,
                at_least=at_least,
                take=[tf.concat(pair, 0) for pair in zip(awaited, more)],
                undrawn=undrawn,
                wake=self._messages.enqueue_many([tf.fill([at_least], ""), wakes], name="wake"),
                withdraw=self._tickets.dequeue_many(self._tickets.size(), name="withdraw"),
            )

    def draw(self):
        """Waits for a ticket; returns it and how long that took in us, int64 scalars."""
        with tf.device(self.device):
            before = tf.timestamp()
            with tf.control_dependencies([before]):
                ticket = self._tickets.dequeue(name="draw")
            with tf.control_dependencies([ticket]):
                return ticket, tf.cast((tf.timestamp() - before) * 1e6, tf.int64)

    def send(self, member, numbers):
        """Returns the op that sends one message to the chief.

        Args:
          member: the sender, a string.
          numbers: kind, ticket, token, waited, drawn: an int64 tensor [5].
        """
        with tf.device(self.device):
            return self._messages.enqueue([member, numbers], name="send")
