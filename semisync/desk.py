"""The desk: the two queues on the global step's PS through which tickets and batches pass.

    tickets   int64 []                      chief -> workers, each number once
    messages  string [], int64 [], int64 [] workers -> chief: member, ticket, token (see ledger)

The chief alone takes messages, and takes what there is; a worker waits in one place only, for a
ticket.
"""

from semisync.compat import tf


class Desk:
    """Graph ops on the two queues. Build it once a graph, on the global step's device.

    Args:
      name: shared by all processes of the job; two optimizers of one graph have two names.
      global_step: the variable whose device holds the queues.
    """

    def __init__(self, name, global_step):
        self.device = global_step.device
        with tf.device(self.device):
            self._tickets = tf.FIFOQueue(-1, [tf.int64], [[]], shared_name=name + "/tickets")
            self._messages = tf.FIFOQueue(
                -1, [tf.string, tf.int64, tf.int64], [[], [], []], shared_name=name + "/messages"
            )
            self.new_tickets = tf.placeholder(tf.int64, [None], name="new_tickets")
            self.issue = self._tickets.enqueue_many([self.new_tickets], name="issue")
            self.undrawn = self._tickets.size(name="undrawn")
            self.take = self._messages.dequeue_many(self._messages.size(), name="take")
            # May wait for a ticket that a worker has drawn meanwhile: run it with a deadline.
            self.withdraw = self._tickets.dequeue_many(self._tickets.size(), name="withdraw")

    def draw(self):
        """Waits for a ticket; returns it, an int64 scalar tensor."""
        with tf.device(self.device):
            return self._tickets.dequeue(name="draw")

    def tell(self, member, ticket, token):
        """Returns the op that sends one message to the chief."""
        with tf.device(self.device):
            return self._messages.enqueue([member, ticket, token], name="tell")
