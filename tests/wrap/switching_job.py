"""One process of a job that goes on from a checkpoint in one mode, for one leg.

The spec holds

    mode          of semisync.wrap, or "plain": the optimizer alone
    checkpoints   the directory that every leg shares
    leg           a path: the chief writes LEG.before.npz and LEG.after.npz, every variable by its
                  name in the checkpoint
    batches       of each worker
"""

import json
import sys

import numpy as np

import semisync
from semisync.cluster.barrier import Barrier
from semisync.cluster.process import end_with_parent
from semisync.common.compat import tf
from tests.wrap.job import BATCH, batch, begin, build_loss, placement

M = 2


class Values(tf.train.SessionRunHook):
    """On the chief: every variable at the start, or at the end, as a checkpoint has it."""

    def __init__(self, path, at_end):
        self._path = path
        self._at_end = at_end

    def after_create_session(self, session, coord):
        if not self._at_end:
            self._write(session)

    def end(self, session):
        if self._at_end:
            self._write(session)

    def _write(self, session):
        parts = {}
        for variable in tf.global_variables():
            info = variable._get_save_slice_info()
            name, place = (info.full_name, info.var_offset) if info else (variable.op.name, [0])
            parts.setdefault(name, []).append((place, session.run(variable)))
        whole = {}
        for name, found in parts.items():
            values = [value for _, value in sorted(found, key=lambda pair: pair[0])]
            whole[name] = values[0] if len(values) == 1 else np.concatenate(values)
        np.savez(self._path, **whole)


def train(spec, server):
    task, chief = spec["task"], spec["task"] == 0
    ids = tf.placeholder(tf.int64, [None, 4])
    targets = tf.placeholder(tf.float32, [None])
    step = tf.train.get_or_create_global_step()
    optimizer, hooks = tf.train.AdamOptimizer(0.05), []
    if spec["mode"] != "plain":
        optimizer = semisync.wrap(optimizer, spec["mode"], M * BATCH, BATCH)
    train_op = optimizer.minimize(build_loss("square", ids, targets, False), global_step=step)
    if spec["mode"] != "plain":
        hooks = [optimizer.make_session_run_hook(chief, patience=600.0)]
    hooks = [Barrier("start", task, len(spec["cluster"]["worker"]), timeout=300.0)] + hooks
    if chief:
        before, after = (spec["leg"] + end for end in (".before", ".after"))
        hooks = [Values(before, at_end=False)] + hooks + [Values(after, at_end=True)]
    else:
        config = semisync.worker_config(task)
        semisync.wait_until_initialised(server.target, config, timeout=300.0)
    with tf.train.MonitoredTrainingSession(
        master=server.target,
        is_chief=chief,
        hooks=hooks,
        config=semisync.worker_config(task),
        checkpoint_dir=spec["checkpoints"] if chief else None,
        save_checkpoint_secs=None,
        save_checkpoint_steps=10**6,
    ) as session:
        for number in range(spec["batches"]):
            inputs, outputs = batch(task, number)
            session.run(train_op, {ids: inputs, targets: outputs})


def main():
    spec = json.loads(sys.argv[1])
    end_with_parent(spec["parent"])
    server = begin(spec)
    with tf.Graph().as_default(), tf.device(placement(spec)):
        train(spec, server)


if __name__ == "__main__":
    main()
