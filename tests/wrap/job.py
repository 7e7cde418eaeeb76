"""One process of a training job for the tests: a PS, or a worker that trains case after case.

The spec holds `cases`, a list of dicts:

    name              unique; also the variable scope
    optimizer         "Adagrad" | "Adam" | "GradientDescent"
    loss              see build_loss
    batches_per_step  M
    batches           how many batches each worker trains, a list by task
    paced, bound      see GlobalBatchOptimizer and Threshold; a list for PacedSteps, a dict for the
                      MeanStaleness in flight; bound may be null
    resource          True for resource variables
    save_every        global steps between two checkpoints in CASE.checkpoints, or null
    slow              seconds that a worker rests between reading and training, a list by task
    slow_chief        seconds that the chief rests after a global step

and `out`, a directory: worker k writes CASE.k.json with the ticket of each of its batches; the
chief writes CASE.audit (JSON lines) and CASE.npz with every global variable before and after.
"""

import json
import os
import sys
import time

import numpy as np

import semisync
from semisync.cluster.barrier import Barrier
from semisync.cluster.process import end_with_parent
from semisync.common.compat import tf

ROWS, DIM, BATCH = 13, 3, 5


def batch(task, number):
    """The inputs of a worker's batch: ids [BATCH, 4] unsorted and repeated, and targets [BATCH]."""
    rng = np.random.RandomState(1000 * task + number)
    return rng.randint(0, ROWS, (BATCH, 4)), rng.randn(BATCH).astype(np.float32)


def build_loss(kind, ids, targets, resource):
    """A partitioned embedding, a plain one and a dense kernel.

    kind "square": a mean squared error. kind "linear": linear in every variable, so that the
    gradient of a batch does not depend on when its parameters were read.
    """
    tf.get_variable_scope().set_use_resource(resource)
    rng = np.random.RandomState(0)
    table = tf.get_variable(
        "table",
        [ROWS, DIM],
        partitioner=tf.fixed_size_partitioner(3),
        initializer=tf.random_uniform_initializer(-1, 1, seed=1),
    )
    bias = tf.get_variable("bias", initializer=rng.randn(ROWS, 1).astype(np.float32))
    kernel = tf.get_variable("kernel", initializer=rng.randn(4 * DIM, 1).astype(np.float32))
    tf.get_variable("unused", initializer=0.0)
    vectors = tf.reshape(tf.nn.embedding_lookup(table, ids), [-1, 4 * DIM])
    linear = tf.reduce_sum(tf.nn.embedding_lookup(bias, ids), [1, 2])
    if kind == "square":
        output = tf.reshape(tf.matmul(vectors, kernel), [-1]) + linear
        return tf.reduce_mean(tf.square(output - targets))
    features = tf.tile(tf.cast(ids, tf.float32), [1, DIM])
    output = tf.reduce_sum(vectors, 1) + linear + tf.reshape(tf.matmul(features, kernel), [-1])
    return tf.reduce_mean(output * targets)


def make_optimizer(name):
    """The optimizer that a case names, with a rate that moves the variables visibly."""
    return {
        "Adagrad": lambda: tf.train.AdagradOptimizer(0.1),
        "Adam": lambda: tf.train.AdamOptimizer(0.1),
        "GradientDescent": lambda: tf.train.GradientDescentOptimizer(0.1),
    }[name]()


def begin(spec):
    """The tf.train.Server of this process; a PS never returns from it."""
    cluster = tf.train.ClusterSpec(spec["cluster"])
    server = tf.train.Server(cluster, job_name=spec["job"], task_index=spec["task"])
    if spec["job"] == "ps":
        server.join()
    return server


def placement(spec):
    """The device function of a worker or chief: variables on the PS in turn, all else its own."""
    worker = "/job:%s/task:%d" % (spec["job"], spec["task"])
    cluster = tf.train.ClusterSpec(spec["cluster"])
    return tf.train.replica_device_setter(cluster=cluster, worker_device=worker)


def pace(paced):
    """The arguments of GlobalBatchOptimizer that a case's `paced` stands for."""
    if isinstance(paced, dict):
        return {"in_flight": semisync.MeanStaleness(**paced)}
    return {"paced": semisync.PacedSteps(*paced) if isinstance(paced, list) else paced}


def train(case, spec, server):
    """Trains one case in this worker."""
    task, chief = spec["task"], spec["task"] == 0
    with tf.Graph().as_default(), tf.device(placement(spec)), tf.variable_scope(case["name"]):
        ids = tf.placeholder(tf.int64, [None, 4])
        targets = tf.placeholder(tf.float32, [None])
        step = tf.train.get_or_create_global_step()
        bound = case["bound"]
        opt = semisync.GlobalBatchOptimizer(
            make_optimizer(case["optimizer"]),
            case["batches_per_step"],
            staleness=None if bound is None else semisync.Threshold(bound),
            **pace(case["paced"]),
            name=case["name"] + "_opt",
        )
        loss = build_loss(case["loss"], ids, targets, case["resource"])
        # As jobs with BatchNorm do: the train op comes after ops that need a batch.
        with tf.control_dependencies([tf.identity(targets)]):
            train_op = opt.minimize(loss, global_step=step)
        out = os.path.join(spec["out"], case["name"])
        hook = opt.make_session_run_hook(chief, audit=out + ".audit" if chief else None)
        if chief and case["slow_chief"]:
            hook.observe([], lambda step, values: time.sleep(case["slow_chief"]))
        hooks = [Barrier(case["name"], task, len(case["batches"])), hook]
        if chief:
            hooks = [Before(out)] + hooks + [After(out)]
        log = []
        if not chief:
            semisync.wait_until_initialised(server.target, semisync.worker_config(task))
        with tf.train.MonitoredTrainingSession(
            master=server.target,
            is_chief=chief,
            hooks=hooks,
            config=semisync.worker_config(task),
            checkpoint_dir=out + ".checkpoints" if chief and case["save_every"] else None,
            scaffold=tf.train.Scaffold(saver=tf.train.Saver(sharded=True, max_to_keep=1000)),
            save_checkpoint_secs=None,
            save_checkpoint_steps=case["save_every"],
        ) as session:
            for number in range(case["batches"][task]):
                ticket, token = session.run([opt.handles.worker.ticket, opt.handles.worker.token])
                time.sleep(case["slow"][task])
                inputs, outputs = batch(task, number)
                session.run(train_op, {ids: inputs, targets: outputs})
                log.append({"ticket": int(ticket), "token": int(token), "number": number})
        if chief:
            with open(out + ".ledger", "w") as file:
                balanced = hook.ledger.balance()
                json.dump(dict(hook.ledger.fates, balanced=balanced), file)
    with open("%s.%d.json" % (out, task), "w") as file:
        json.dump(log, file)


class Before(tf.train.SessionRunHook):
    """On the chief: every global variable before the first global step, to OUT.before.npz."""

    def __init__(self, out):
        self._out = out

    def after_create_session(self, session, coord):
        write_variables(session, self._out + ".before")


class After(tf.train.SessionRunHook):
    """On the chief: every global variable after the last global step, to OUT.after.npz.

    It stands after the optimizer's hook, whose `end` applies the last global batch.
    """

    def __init__(self, out):
        self._out = out

    def end(self, session):
        write_variables(session, self._out + ".after")


def write_variables(session, path):
    values = session.run({v.op.name: v for v in tf.global_variables()})
    np.savez(path, **{name.split("/", 1)[1]: value for name, value in values.items()})


def main(train):
    """The process that its spec asks for; a worker calls train(case, spec, server) of each case."""
    spec = json.loads(sys.argv[1])
    end_with_parent(spec["parent"])
    server = begin(spec)
    for case in spec["cases"]:
        train(case, spec, server)


if __name__ == "__main__":
    main(train)
