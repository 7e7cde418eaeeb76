"""The mailbox: two queues on the global step's PS through which tickets and messages pass.

    tickets   int64 []               chief -> workers, each number once
    messages  string [], int64 [4]   workers -> chief: member, (kind, ticket, token, waited)

    kind        meaning
    JOINED      a worker's session begins; only the kind counts
    DRAWN       the worker holds the ticket; it has given up any other ticket
    STAGED      every PS holds its part of the batch; `waited` is how long the ticket took, in us
    WITHHELD    the batch was too stale when its gradient was ready, and was not sent
    LEFT        the worker's session ends; the ticket was not used
    DISAGREED   the worker's settings differ from the chief's; `member` says how

The chief alone takes messages, and takes those that are there. A worker waits in one place only:
for a ticket.
"""

from typing import Any, NamedTuple

from semisync.common.compat import tf

JOINED, DRAWN, STAGED, WITHHELD, LEFT, DISAGREED = range(6)


class Message(NamedTuple):
    """One message from a worker to the chief; see the module for its numbers."""

    member: str
    kind: int
    ticket: int
    token: int
    waited: int


def messages(taken):
    """The list of `Message` in the value of `MailboxOps.take`."""
    members, numbers = taken
    return [Message(member.decode(), *map(int, row)) for member, row in zip(members, numbers)]


class MailboxOps(NamedTuple):
    """What the chief runs on the mailbox.

    Attributes:
      new_tickets: placeholder, int64 [n].
      issue: the op that hands out `new_tickets`.
      undrawn: how many tickets are in the queue, after `issue`.
      take: every message that is there, after `issue`.
      withdraw: every ticket that is in the queue. May wait for a ticket that a worker has drawn
        meanwhile: run it with a deadline.
    """

    new_tickets: Any
    issue: Any
    undrawn: Any
    take: Any
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
                -1, [tf.string, tf.int64], [[], [4]], shared_name=name + "/messages"
            )

    def chief_ops(self):
        """Returns the `MailboxOps`."""
        with tf.device(self.device):
            new_tickets = tf.placeholder(tf.int64, [None], name="new_tickets")
            issue = self._tickets.enqueue_many([new_tickets], name="issue")
            # One run issues, counts and takes.
            with tf.control_dependencies([issue]):
                undrawn = self._tickets.size(name="undrawn")
                take = self._messages.dequeue_many(self._messages.size(), name="take")
            withdraw = self._tickets.dequeue_many(self._tickets.size(), name="withdraw")
        return MailboxOps(
            new_tickets=new_tickets, issue=issue, undrawn=undrawn, take=take, withdraw=withdraw
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
          numbers: kind, ticket, token, waited: an int64 tensor [4].
        """
        with tf.device(self.device):
            return self._messages.enqueue([member, numbers], name="send")
