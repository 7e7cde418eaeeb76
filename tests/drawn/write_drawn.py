"""Draws whole jobs by their numbers and trains them: python write_drawn.py FOLDER FIRST COUNT.

FOLDER/NUMBER/ of each has model.ckpt with its MetaGraph, said.txt, the choices, and job.npz:

    rows/POINT, scores    what is scored and the outputs for it, not in training
    K/fed/POINT           what step K, from 0, is fed
    K/loss                before its update
    K/gradient/NODE       of each trained variable; of a table with K/indices/NODE
    K/after/NAME          every variable and slot after it

One thread: a sum has one order. Runs in TensorFlow 1.15 and 2.x.
"""

import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["TF_USE_LEGACY_KERAS"] = "1"
sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[2]))

import numpy as np
import tensorflow.compat.v1 as tf
from draw import ROWS, Draw
from features import Features
from nets import Nets
from optimizing import trained

from tests.support.variables import load, under, whole

BEFORE, STEPS = 2, 3


def write(folder, number):
    """Draws, trains and keeps one job."""
    draw = Draw(number)
    functions = draw.may("functions")  # which take no references
    (tf.enable_control_flow_v2 if functions else tf.disable_control_flow_v2)()
    resource = functions or draw.may("resources")
    with tf.Graph().as_default(), tf.variable_scope("", use_resource=resource):
        tf.set_random_seed(number)
        training = tf.placeholder_with_default(False, [], "training")
        step = tf.train.get_or_create_global_step()
        features, nets = Features(draw), Nets(draw, training)
        vectors = features.vectors()
        if draw.may("history"):
            vectors.append(nets.sequence(*features.history()))
        logit = nets.logit(vectors)
        scores = tf.sigmoid(logit, name="scores")
        label = tf.placeholder(tf.float32, [None], "label")
        draw.points["label"] = lambda state: {
            "label:0": state.randint(0, 2, ROWS).astype(np.float32)
        }
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=label, logits=logit))
        loss = tf.add_n([loss, *tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)], name="loss")
        train_op, pairs = trained(draw, loss, step, resource)
        kept = _run(folder, number, draw, scores, loss, train_op, pairs)
    with open(os.path.join(folder, "said.txt"), "w") as file:
        file.write("; ".join(draw.said) + "\n")
    np.savez(os.path.join(folder, "job.npz"), **kept)


def _run(folder, number, draw, scores, loss, train_op, pairs):
    config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    with tf.Session(config=config) as session:
        session.run(tf.global_variables_initializer())
        for k in range(BEFORE):
            session.run(train_op, draw.feeds(1000 * number + k, **{"training:0": True}))
        tf.train.Saver().save(session, os.path.join(folder, "model.ckpt"))
        rows = draw.feeds(1000 * number + 500)
        del rows["label:0"]
        kept = {"scores": session.run(scores, rows), **under("rows", rows)}
        for k in range(STEPS):
            fed = draw.feeds(1000 * number + BEFORE + k, **{"training:0": True})
            kept.update(under("{}/fed".format(k), fed))
            given = {v.op.name: g for g, v in pairs if g is not None}
            sparse = {n: g for n, g in given.items() if isinstance(g, tf.IndexedSlices)}
            # By themselves: while a step is taken, they may read what it has changed. Those that
            # wait for statistics move them.
            before = session.run(tf.global_variables())
            found = session.run(
                {
                    "loss": loss,
                    "gradient": {
                        n: sparse[n].values if n in sparse else g for n, g in given.items()
                    },
                    "indices": {n: g.indices for n, g in sparse.items()},
                },
                fed,
            )
            load(session, dict(zip(tf.global_variables(), before)))
            kept["{}/loss".format(k)] = found["loss"]
            for kind in ("gradient", "indices"):
                kept.update(under("{}/{}".format(k, kind), found[kind]))
            session.run(train_op, fed)
            kept.update(under("{}/after".format(k), whole(session)))
        return kept


if __name__ == "__main__":
    out, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    for drawn in range(first, first + count):
        place = os.path.join(out, str(drawn))
        os.makedirs(place, exist_ok=True)
        write(place, drawn)
