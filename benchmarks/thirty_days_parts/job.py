"""One process of TensorFlow's cluster: a PS, or a worker that trains the days of a stage.

    python -m benchmarks.thirty_days_parts.job SPEC

SPEC is a JSON object. Besides LocalCluster's entries it holds `plan` (the fields of Plan), `seed`,
`rows` (the folder of the days' .npz), `out`, `days` (first, behind the last) and `paced`. The stage
goes on from the checkpoint that OUT/checkpoint names, if there is one. For each day it leaves

    day-DD            the checkpoint, by the chief, once all batches of the day are applied
    audit.jsonl       what became of each batch (`semisync.audit`)
    plain.meta        the MetaGraph of the job with the plain optimizer, as `semisync train` wants
    day-DD.K.npz      by worker K, of each batch that it trained: number (in the day), step (the
                      global step of the parameters that it was computed from), logits [local_batch]

A day has a graph and a session of its own, which goes on from the checkpoint of the day before. Its
batches are numbered, and a worker takes the next number when it is free; its logits come from the
run that computes its gradients. The chief saves once all workers have left and all of their batches
are applied (`semisync.demo.tensorflow.work`).

Runs on Python 3.7 with TensorFlow 1.15, or with TFRA.
"""

import json
import os
import sys

import numpy as np

import semisync
from benchmarks.thirty_days_parts import data
from benchmarks.thirty_days_parts.plan import Plan
from semisync.cluster.process import join_cluster
from semisync.common.compat import tf
from semisync.common.files import replacing
from semisync.demo.tensorflow.training import plain_session, step_now
from semisync.demo.tensorflow.work import Ending, WorkList


class Day:
    """Builds the graph of a worker's day in the default graph; `run` trains it."""

    def __init__(self, spec, plan, model, day):
        self._spec, self._plan, self._task = spec, plan, spec["task"]
        self._columns = data.read(spec["rows"], day)
        self._prefix = os.path.join(spec["out"], "day-{:02d}".format(day))
        self._model, chief = model.Model(100 * spec["seed"], plan), not self._task
        step = tf.train.get_or_create_global_step()
        paced = semisync.PacedSteps(first=plan.start) if plan.start else False
        how = {"staleness": semisync.Threshold(plan.bound), "paced": paced}
        optimizer = semisync.GlobalBatchOptimizer(
            model.optimizer(plan),
            plan.batches_per_step,
            **({"paced": True} if spec["paced"] else how),
        )
        pairs = optimizer.compute_gradients(self._model.loss)
        self._read_at = step_now(step)
        with tf.control_dependencies([self._read_at]):
            self._train = optimizer.apply_gradients(pairs, step)
        self._work = WorkList(len(self._columns["key"]) // plan.local_batch, chief)
        audit = os.path.join(spec["out"], "audit.jsonl")
        hook = optimizer.make_session_run_hook(chief, audit=audit)
        self._hooks = [self._work, hook, Ending(self._prefix, self._task, plan.workers, None)]

    def run(self, server):
        """Trains until no batch is left, and writes what became of its batches."""
        folder = None if self._task else self._spec["out"]
        with plain_session(server, self._task, self._hooks, checkpoint_dir=folder) as session:
            trained = self._loop(session)
            path = "{}.{}.npz".format(self._prefix, self._task)
            with replacing(path) as beside, open(str(beside), "wb") as file:
                np.savez(file, **trained)

    def _loop(self, session):
        trained, size = {"number": [], "step": [], "logits": []}, self._plan.local_batch
        while True:
            try:
                number = int(session.run_step_fn(self._next_number))
            except tf.errors.OutOfRangeError:
                return trained
            feed = self._model.feed(self._columns, slice(number * size, number * size + size))
            fetched = session.run([self._train, self._read_at, self._model.logits], feed)
            for name, value in zip(trained, (number, *fetched[1:])):
                trained[name].append(value)

    def _next_number(self, step_context):
        """Without the hooks, which are the training's."""
        return step_context.session.run(self._work.next)


def export(path, plan, model):
    """Writes the MetaGraph of this job without a cluster: the plain optimizer, no devices."""
    with tf.Graph().as_default():
        built, step = model.Model(0, plan), tf.train.get_or_create_global_step()
        model.optimizer(plan).minimize(built.loss, global_step=step)
        tf.train.Saver()
        tf.train.export_meta_graph(path)


def main():
    """The process."""
    plan = Plan(**json.loads(sys.argv[1])["plan"])
    model = plan.model  # in a PS, too, which needs the ops of its tables
    spec, server, place = join_cluster(tf.logging.ERROR)
    if spec["task"] == 0:
        export(os.path.join(spec["out"], "plain.meta"), plan, model)
    for day in range(*spec["days"]):
        # A container per day keeps the days' variables and queues apart on the PS.
        with tf.Graph().as_default() as graph, graph.container(str(day)), tf.device(place):
            Day(spec, plan, model, day).run(server)


if __name__ == "__main__":
    main()
