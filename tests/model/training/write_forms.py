"""Jobs whose parts are written in many forms: python write_forms.py FOLDER DIGEST.

FOLDER/FORM/ has model.ckpt with its MetaGraph, and job.npz:

    rows, label           what a step is fed
    scores                of the rows, not in training
    layers                the BatchNorms that the wrapper finds
    after/NAME            every variable after one more step

FORM is where a tensor is handed on by all ops that do (`hands_on`), or "statistics", a chain of
layers whose moving averages move in as many ways. Runs in TensorFlow 1.15 and 2.x.
"""

import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[3]))

import numpy as np
import tensorflow.compat.v1 as tf

import graph_rewrite

PLACES = "table", "ids", "rows", "net", "statistic", "logit", "loss", "rate", "gradient"
RATE = 0.25
MOVES = {
    "assign_sub": lambda moving, value: moving.assign_sub((moving - value) * RATE),
    "assign_add": lambda moving, value: moving.assign_add((value - moving) * RATE),
    "kept": lambda moving, value: moving.assign(moving * (1 - RATE) + value * RATE),
    "towards": lambda moving, value: moving.assign(moving + (value - moving) * RATE),
    "divided": lambda moving, value: moving.assign_add((value - moving) / (1 / RATE)),
    "by hand": lambda moving, value: tf.assign(
        moving, tf.add(tf.multiply(moving, 1 - RATE), tf.multiply(value, RATE))
    ),
}


def by_hand(net):
    """The moments, without tf.nn.moments."""
    mean = tf.reduce_mean(net, 0)
    return mean, tf.reduce_mean(tf.square(net - mean), 0)


MOMENTS = {"moments": lambda net: tf.nn.moments(net, [0]), "by hand": by_hand}


def hands_on(tensor, place):
    """The tensor itself, behind every op that hands it on and has a gradient where it needs one."""
    floating = tensor.dtype.is_floating
    tensor = tf.identity_n([tf.identity(tensor), tf.constant(1.0)])[0]
    tensor = tf.Print(tensor, [tf.constant(1)], first_n=0)
    if floating:
        tensor = tf.debugging.check_numerics(tensor, "a form")
    if place in ("ids", "rate", "gradient", "statistic"):
        tensor = tf.raw_ops.Snapshot(input=tf.stop_gradient(tensor))
        tensor = tf.raw_ops.PreventGradient(input=tensor)
    return tf.tuple([tf.ensure_shape(tensor, tensor.shape)])[0]


class Job:
    """One job's parts."""

    def __init__(self, form):
        self._form, self.moves = form, []
        self.training = tf.placeholder_with_default(False, [], "training")

    def at(self, place, tensor):
        """The tensor, handed on where the form says so."""
        return hands_on(tensor, place) if place == self._form else tensor

    def normalised(self, net, name, move=MOVES["assign_sub"], moments=MOMENTS["moments"]):
        """The layer's vectors by BatchNorm."""
        with tf.variable_scope(name):
            size, zeros, ones = [3], tf.zeros_initializer(), tf.ones_initializer()
            beta = tf.get_variable("beta", size, initializer=zeros)
            gamma = tf.get_variable("gamma", size, initializer=ones)
            moving = [
                tf.get_variable("moving_mean", size, initializer=zeros, trainable=False),
                tf.get_variable("moving_variance", size, initializer=ones, trainable=False),
            ]
            batch = moments(net)
            self.moves += [
                move(one, self.at("statistic", value)) for one, value in zip(moving, batch)
            ]
            mean, variance = tf.cond(
                self.training, lambda: batch, lambda: tuple(map(tf.identity, moving))
            )
            return tf.nn.batch_normalization(net, mean, variance, beta, gamma, 1e-3)

    def train_op(self, loss):
        """A step of Adagrad, after the averages have moved."""
        optimizer = tf.train.AdagradOptimizer(self.at("rate", tf.constant(0.1)))
        step = tf.train.get_or_create_global_step()
        with tf.control_dependencies([getattr(one, "op", one) for one in self.moves]):
            pairs = optimizer.compute_gradients(loss)
            applied = [(self._gradient(gradient), variable) for gradient, variable in pairs]
            return optimizer.apply_gradients(applied, step, name="train_op")

    def _gradient(self, gradient):
        if isinstance(gradient, tf.IndexedSlices):
            values = self.at("gradient", gradient.values)
            return tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
        return self.at("gradient", gradient)


def write(folder, form):
    """Trains and keeps one job."""
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        job = Job(form)
        ids = tf.placeholder(tf.int64, [None], "ids")
        label = tf.placeholder(tf.float32, [None], "label")
        table = job.at("table", tf.get_variable("table", [20, 4]))
        rows = job.at("rows", tf.nn.embedding_lookup(table, job.at("ids", ids)))
        net = tf.matmul(rows, tf.get_variable("kernel", [4, 3]))
        net = job.normalised(job.at("net", net), "norm")
        if form == "statistics":
            for move in MOVES:
                for moments in MOMENTS:
                    net = tf.matmul(net, tf.get_variable(f"kernel_{len(job.moves)}", [3, 3]))
                    name = f"norm_{len(job.moves)}"
                    net = job.normalised(net, name, MOVES[move], MOMENTS[moments])
        logit = job.at("logit", tf.matmul(net, tf.get_variable("last", [3, 1]))[:, 0])
        scores = tf.sigmoid(logit, name="scores")
        losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=label, logits=logit)
        train = job.train_op(job.at("loss", tf.reduce_mean(losses)))
        layers = graph_rewrite.find_batch_norms(tf.get_default_graph())
        state = np.random.RandomState(0)
        given = {ids: state.randint(0, 20, 8), label: np.float32(np.arange(8) % 2)}
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            session.run(train, {**given, job.training: True})
            tf.train.Saver().save(session, str(folder / "model.ckpt"))
            kept = {"rows": given[ids], "label": given[label], "layers": len(layers)}
            kept["scores"] = session.run(scores, {ids: given[ids]})
            session.run(train, {**given, job.training: True})
            after = {"after/" + one.op.name: one for one in tf.global_variables()}
            kept.update(session.run(after))
        np.savez(folder / "job.npz", **kept)


def main():
    tf.disable_v2_behavior()
    for resources in (False, True):
        (tf.enable_resource_variables if resources else tf.disable_resource_variables)()
        for form in (*PLACES, "statistics"):
            folder = pathlib.Path(sys.argv[1]) / ("resources" if resources else "references") / form
            folder.mkdir(parents=True)
            write(folder, form)


main()
