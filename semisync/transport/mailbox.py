"""The desk: the two queues on the global step's PS through which tickets and batches pass.

    tickets   int64 []               chief -> workers, each number once
    messages  string [], int64 [4]   workers -> chief: member, (kind, ticket, token, waited)

    kind        says
    JOINED      a worker's session begins; of the numbers only the kind counts
    DRAWN       the worker holds the ticket; it gave up any other that it held
    STAGED      the batch stands whole on every PS; `waited` is the time its ticket took, in us
    WITHHELD    the batch was too stale when its gradient was ready, and was not sent
    LEFT        the worker's session ends; the ticket was not used
    DISAGREED   the worker has other settings than the chief; `member` says which

The chief alone takes messages, and takes what there is; a worker waits in one place only, for a
ticket.
"""

import collections

from semisync.common.compat import tf

JOINED, DRAWN, STAGED, WITHHELD, LEFT, DISAGREED = range(6)

Message = collections.namedtuple("Message", "member kind ticket token waited")


def messages(taken):
    """What a run of `Desk.take` gave, as a list of `Message`."""
    members, numbers = taken
    return [Message(member.decode(), *map(int, row)) for member, row in zip(members, numbers)]


class Desk:
    """Graph ops on the two queues. Build it once a graph, on the global step's device.

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
            self.new_tickets = tf.placeholder(tf.int64, [None], name="new_tickets")
            self.issue = self._tickets.enqueue_many([self.new_tickets], name="issue")
            # One run issues, counts and takes.
            with tf.control_dependencies([self.issue]):
                self.undrawn = self._tickets.size(name="undrawn")
                self.take = self._messages.dequeue_many(self._messages.size(), name="take")
            # May wait for a ticket that a worker has drawn meanwhile: run it with a deadline.
            self.withdraw = self._tickets.dequeue_many(self._tickets.size(), name="withdraw")

    def draw(self):
        """Waits for a ticket; returns it and how long that took in us, int64 scalars."""
        with tf.device(self.device):
            before = tf.timestamp()
            with tf.control_dependencies([before]):
                ticket = self._tickets.dequeue(name="draw")
            with tf.control_dependencies([ticket]):
                return ticket, tf.cast((tf.timestamp() - before) * 1e6, tf.int64)

    def tell(self, member, numbers):
        """Returns the op that sends one message to the chief.

        Args:
          member: who tells it, a string.
          numbers: kind, ticket, token, waited: an int64 tensor [4].
        """
        with tf.device(self.device):
            return self._messages.enqueue([member, numbers], name="tell")
