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

1. The chief puts the numbers of the day's batches into a queue, and an END per worker. A worker
   takes the next when it is free; its logits come from the run that computes its gradients.
2. A worker that takes END writes its file, and waits for the chief.
3. The chief waits until all have ended and the global step says that their batches are applied,
   saves, and lets them go on.

Runs on Python 3.7 with TensorFlow 1.15, or with TFRA.
"""

import json
import os
import sys
import time

import numpy as np

import semisync
from benchmarks.thirty_days_parts import data
from benchmarks.thirty_days_parts.plan import Plan
from semisync.cluster.process import join_cluster
from semisync.common.compat import tf
from semisync.common.files import replacing
from semisync.demo.tensorflow.training import plain_session, step_now

END = -1
DEADLINE = 300.0  # seconds that the chief waits for the others at the end of a day


class Worker:
    """Builds the graph in the default graph; `run` trains the days."""

    def __init__(self, spec, plan, model):
        self._spec, self._plan, self._task = spec, plan, spec["task"]
        self._model = model.Model(100 * spec["seed"], plan)
        self._step = tf.train.get_or_create_global_step()
        with tf.device("/job:ps/task:0"):
            work, ended, released = (
                tf.FIFOQueue(-1, [tf.int64], [[]], shared_name=name)
                for name in ("work", "ended", "released")
            )
            self._numbers = tf.placeholder(tf.int64, [None])
            self._fill, self._next = work.enqueue_many([self._numbers]), work.dequeue()
            self._end, self._ended = ended.enqueue([self._task]), ended.size()
            self._release, self._released = (
                released.enqueue_many([self._numbers]),
                released.dequeue(),
            )
        paced = semisync.PacedSteps(first=plan.start) if plan.start else False
        how = {"staleness": semisync.Threshold(plan.bound), "paced": paced}
        self._optimizer = semisync.GlobalBatchOptimizer(
            model.optimizer(plan),
            plan.batches_per_step,
            **({"paced": True} if spec["paced"] else how),
        )
        pairs = self._optimizer.compute_gradients(self._model.loss)
        self._read_at = step_now(self._step)
        with tf.control_dependencies([self._read_at]):
            self._train = self._optimizer.apply_gradients(pairs, self._step)
        self._audit = os.path.join(spec["out"], "audit.jsonl")
        self._saver = tf.train.Saver(max_to_keep=None, sharded=True)

    def run(self, server):
        """Trains the days."""
        chief = self._task == 0
        session = plain_session(
            server,
            self._task,
            hooks=[self._optimizer.make_session_run_hook(chief, audit=self._audit)],
            checkpoint_dir=self._spec["out"] if chief else None,
            scaffold=tf.train.Scaffold(saver=self._saver),
        )
        with session:
            if chief:
                self._applied = self._plainly(session, self._step)
            for days, day in enumerate(range(*self._spec["days"]), 1):
                self._train_day(session, day, days)

    def _train_day(self, session, day, days):
        """Trains a day, the last of `days` in this stage."""
        columns, size = data.read(self._spec["rows"], day), self._plan.local_batch
        batches = len(columns["key"]) // size
        if self._task == 0:
            numbers = list(range(batches)) + [END] * self._plan.workers
            self._plainly(session, self._fill, {self._numbers: numbers})
        trained = {"number": [], "step": [], "logits": []}
        while True:
            number = int(self._plainly(session, self._next))
            if number == END:
                break
            feed = self._model.feed(columns, slice(number * size, number * size + size))
            fetched = session.run([self._train, self._read_at, self._model.logits], feed)
            for name, value in zip(trained, (number, *fetched[1:])):
                trained[name].append(value)
        path = os.path.join(self._spec["out"], "day-{:02d}.{}.npz".format(day, self._task))
        with replacing(path) as beside, open(str(beside), "wb") as file:
            np.savez(file, **trained)
        self._plainly(session, self._end)
        if self._task == 0:
            self._applied += batches // self._plan.batches_per_step
            self._save(session, day, days)
        self._plainly(session, self._released)

    def _save(self, session, day, days):
        """Once the day's batches are applied; then lets all workers go on."""
        deadline = time.monotonic() + DEADLINE
        while True:
            ended = self._plainly(session, self._ended)
            step = self._plainly(session, self._step)
            if ended == days * self._plan.workers and step == self._applied:
                break
            if time.monotonic() > deadline:
                raise RuntimeError("day {}: {} ended, step {}".format(day, ended, step))
            time.sleep(0.02)
        path = os.path.join(self._spec["out"], "day-{:02d}".format(day))
        session.run_step_fn(lambda step_context: self._saver.save(step_context.session, path))
        self._plainly(session, self._release, {self._numbers: [0] * self._plan.workers})

    def _plainly(self, session, fetches, feed=None):
        """Without the hooks, which draw a ticket for every run."""
        return session.run_step_fn(lambda step_context: step_context.session.run(fetches, feed))


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
    with tf.device(place):
        Worker(spec, plan, model).run(server)


if __name__ == "__main__":
    main()
