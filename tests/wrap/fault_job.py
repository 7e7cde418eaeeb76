"""One process of a job that is killed, stopped and started again: a PS, or a worker.

The spec holds, besides what `LocalCluster` puts there:

    out                a directory: AUDIT and CHECKPOINTS, written by the chief
    chief              True in the worker that is the chief
    batches            how many batches to train; null: until the file STOP exists
    batches_per_step, bound, patience
    hash_table         "tfra": the table is TFRA's, by the raw ids `raw_id`; "by hand": those of
                       TensorFlow, one on each PS, which the job itself trains
    twins              True: two paced optimizers train, the second a variable of its own
    pause              seconds between two batches
    recovery_wait      see `look_again_after`; null: TensorFlow's own
    sessions           how often each process trains; before the chief does so again it waits for
                       the file NEXT

Every batch adds one number, which its ticket alone decides, to a variable on PS 0, to one on PS 1
and to a row of a table on both. So the variables agree unless a batch was torn, and the audit log
alone says what their values must be. The numbers are whole, so that the sums are exact.
"""

import faulthandler
import functools
import json
import os
import signal
import sys
import time

import semisync
from semisync.cluster.process import end_with_parent
from semisync.common.compat import tf
from tests.wrap.job import begin, placement

AUDIT, CHECKPOINTS, STOP, NEXT = "audit", "checkpoints", "stop", "next"
ROWS, NAME = 7, "faults"
SPEC = {  # by default
    "batches": None,
    "batches_per_step": 4,
    "bound": 4,
    "patience": 6.0,
    "twins": False,
    "pause": 0.02,
    "recovery_wait": 0.5,
    "sessions": 1,
    "hash_table": False,
}


def addend(ticket):
    """What the batch of a ticket adds: a whole number, so scattered that no two sums agree."""
    return ticket * 2654435761 % 255 - 127


def row(ticket):
    """The row of the table to which the batch of a ticket adds."""
    return ticket // 7 % ROWS


def tfra():
    """TFRA's module, imported where it is needed: one environment has it."""
    from tensorflow_recommenders_addons import dynamic_embedding

    return dynamic_embedding


def raw_id(row):
    """The id of a row of the hash table; the first ones are negative."""
    return (row - 3) * 10**12


def look_up(place, hash_table):
    """Row `place`, int64 [1], of the table on both PS."""
    if hash_table == "tfra":
        devices = ["/job:ps/task:{}/CPU:0".format(task) for task in range(2)]
        table = tfra().get_variable("table", dim=1, initializer=0.0, devices=devices)
        return tfra().embedding_lookup(table, raw_id(place))
    table = tf.get_variable(
        "table",
        [ROWS, 1],
        partitioner=tf.fixed_size_partitioner(2),
        initializer=tf.zeros_initializer(),
    )
    return tf.nn.embedding_lookup(table, place, partition_strategy="div")


class ByHand:
    """The rows of the raw ids in a table on each PS, by gradient descent with the rate 1."""

    def __init__(self, place):
        dealt = tf.dynamic_partition(raw_id(place), tf.cast(place % 2, tf.int32), 2)
        self._tables, self.rows, self._ids = [], [], dealt
        for task, ids in enumerate(dealt):
            with tf.device("/job:ps/task:{}".format(task)):
                table = tf.lookup.experimental.DenseHashTable(
                    tf.int64, tf.float32, [0.0], -1, -2, name="by_hand_{}".format(task)
                )
                self._tables.append(table)
                self.rows.append(table.lookup(ids))

    def gradients(self, loss):
        """The (gradient, RowTable) pairs."""
        for task, (table, ids, rows) in enumerate(zip(self._tables, self._ids, self.rows)):
            gradient = tf.IndexedSlices(tf.gradients(loss, rows)[0], ids)
            name, device = "table/{}".format(task), "/job:ps/task:{}".format(task)
            yield gradient, semisync.RowTable(name, 1, device, functools.partial(descend, table))


def descend(table, ids, gradient):
    return table.insert(ids, table.lookup(ids) - gradient)


def minimize(opt, value, place, hash_table, step):
    """The train op of a loss with the negative gradient `value` in left, right and a table row."""
    if hash_table != "by hand":
        return opt.minimize(build(value, tf.reduce_sum(look_up(place, hash_table))), step)
    table = ByHand(place)
    loss = build(value, tf.add_n(list(map(tf.reduce_sum, table.rows))))
    pairs = opt.compute_gradients(loss) + list(table.gradients(loss))
    return opt.apply_gradients(pairs, step)


def build(value, rows):
    """The loss; its negative gradient is `value` in `left`, `right` and what is looked up."""
    with tf.device("/job:ps/task:0"):
        left = tf.get_variable("left", initializer=0.0)
    with tf.device("/job:ps/task:1"):
        right = tf.get_variable("right", initializer=0.0)
    return -value * (left + right + rows)


def look_again_after(seconds):
    """Has MonitoredTrainingSession look sooner whether the variables are ready.

    A worker that comes back before the chief has restored them sleeps 30 s before it looks again,
    and MonitoredTrainingSession has no argument for that. A job with TensorFlow's own 30 s ends no
    worse, only later.
    """
    session_manager = tf.train.SessionManager
    session_manager.__init__ = functools.partialmethod(
        session_manager.__init__, recovery_wait_secs=seconds
    )


def wrapped(spec, name):
    optimizer = tf.train.GradientDescentOptimizer(1.0)
    if spec["hash_table"] == "tfra":
        optimizer = tfra().DynamicEmbeddingOptimizer(optimizer)
    return semisync.GlobalBatchOptimizer(
        optimizer,
        spec["batches_per_step"],
        staleness=semisync.Threshold(spec["bound"]),
        paced=spec["twins"],
        name=name,
    )


def train(spec, server):
    """Trains in this worker until it has its batches, or is told to stop."""
    out = spec["out"]
    with tf.device(placement(spec)):
        value, place = tf.placeholder(tf.float32, []), tf.placeholder(tf.int64, [1])
        step = tf.train.get_or_create_global_step()
        opt = wrapped(spec, NAME)
        train_op = minimize(opt, value, place, spec["hash_table"], step)
        hooks = [
            opt.make_session_run_hook(
                spec["chief"], patience=spec["patience"], audit=os.path.join(out, AUDIT)
            )
        ]
        if spec["twins"]:
            twin = wrapped(spec, "twin")
            loss = value * tf.get_variable("twin_of_left", initializer=0.0)
            train_op = tf.group(train_op, twin.minimize(loss))
            hooks.append(twin.make_session_run_hook(spec["chief"], patience=spec["patience"]))

    def batch(step_context):
        # After a failure TensorFlow makes a new session and calls this again: with a new ticket.
        # Not step_context.session: that stays the failed one.
        ticket = int(step_context.run_with_hooks(opt.handles.worker.ticket))
        step_context.run_with_hooks(train_op, {value: addend(ticket), place: [row(ticket)]})

    with tf.train.MonitoredTrainingSession(
        master=server.target,
        is_chief=spec["chief"],
        hooks=hooks,
        config=semisync.worker_config(spec["task"], spec["job"]),
        checkpoint_dir=os.path.join(out, CHECKPOINTS),
        scaffold=tf.train.Scaffold(saver=tf.train.Saver(sharded=True, max_to_keep=100000)),
        save_checkpoint_secs=1,
        save_summaries_steps=None,
        save_summaries_secs=None,
        log_step_count_steps=None,
    ) as session:
        trained = 0
        while trained != spec["batches"] and not os.path.exists(os.path.join(out, STOP)):
            session.run_step_fn(batch)
            trained += 1
            time.sleep(spec["pause"])


def main():
    spec = json.loads(sys.argv[1])
    faulthandler.register(signal.SIGUSR1)  # prints where every thread is, to explain a hang
    end_with_parent(spec["parent"])
    tf.logging.set_verbosity(tf.logging.INFO)
    if spec["recovery_wait"] is not None:
        look_again_after(spec["recovery_wait"])
    if spec["hash_table"] == "tfra":
        tfra()  # a PS, too, needs its ops
    server = begin(spec)
    for number in range(spec["sessions"]):
        while number and spec["chief"] and not os.path.exists(os.path.join(spec["out"], NEXT)):
            time.sleep(0.05)
        with tf.Graph().as_default():
            train(spec, server)


if __name__ == "__main__":
    main()
