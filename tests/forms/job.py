"""The small job around each form, and what TensorFlow computes of it.

A table of 20 vectors and 3 numbers a row go through two kernels to a logit; `Job` has a method for
each part that a form may make instead. `keep` trains it:

    model.ckpt*           after two steps, with its MetaGraph
    job.npz               as `tests.drawn.job.Job` reads it: rows, scores, three more steps
"""

import os

import numpy as np

from semisync.common.compat import tf
from tests.support.variables import load, under, whole

ROWS, WORDS, SIZE = 8, 20, 4
BEFORE, STEPS = 2, 3


class Job:
    """One job.

    Attributes:
        points: functions of a RandomState that return {tensor's name: value} of a batch.
        steps: {tensor's name: value} of what a step is fed, and scoring is not.
        beside: ops that are run beside the train op, in one group with it.
        minimised: what the gradients are of, where it is not the loss.
    """

    def __init__(self, form):
        self._form, self._training = form, None
        self.points, self.steps, self.beside, self.minimised = [], {}, [], None

    def build(self):
        """Adds the job to the default graph; returns (scores, loss, train op)."""
        tf.set_random_seed(1)
        self.step = tf.train.get_or_create_global_step()
        vectors = [self._made("vectors", None), self.numbers()]
        kernel = tf.get_variable("first", [sum(int(v.shape[1]) for v in vectors), SIZE])
        net = self.at("net", tf.matmul(tf.concat(vectors, 1), kernel))
        net = tf.tanh(self._made("net", net))
        logit = tf.matmul(net, tf.get_variable("last", [int(net.shape[1]), 1]))[:, 0]
        logit = self.at("logit", logit + tf.get_variable("bias", []))
        scores = tf.sigmoid(logit, name="scores")
        loss = self.at("loss", self._made("loss", logit))
        train_op = tf.group(self._made("train", loss), *self.beside, name="train_op")
        return scores, loss if self.minimised is None else self.minimised, train_op

    def _made(self, part, given):
        if part == self._form.part:
            return self._form.build(self, given)
        return getattr(self, part)(given)

    def at(self, place, tensor):
        """The tensor; a form that hands on what is at this place has other ops before it."""
        return self._form.build(tensor, place) if self._form.part == "at " + place else tensor

    def vectors(self, _):
        """A look-up."""
        table = self.at("table", tf.get_variable("table", [WORDS, SIZE]))
        return self.at("rows", tf.nn.embedding_lookup(table, self.at("ids", self.ids())))

    def net(self, net):
        """Nothing between the kernels."""
        return net

    def loss(self, logit):
        """The loss of a click."""
        losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=self.label(), logits=logit)
        return tf.reduce_mean(losses)

    def train(self, loss):
        """A step of the optimizer, after UPDATE_OPS."""
        optimizer = self._made("optimizer", self._made("rate", None))
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            pairs = [(self._gradient(g), v) for g, v in optimizer.compute_gradients(loss)]
            return optimizer.apply_gradients(pairs, self.step)

    def rate(self, _):
        """A constant."""
        return self.at("rate", tf.constant(0.1))

    def optimizer(self, rate):
        """Adagrad."""
        return tf.train.AdagradOptimizer(rate)

    def _gradient(self, gradient):
        if isinstance(gradient, tf.IndexedSlices):
            values = self.at("gradient", gradient.values)
            return tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
        return self.at("gradient", gradient)

    @property
    def training(self):
        """The placeholder that says whether the job trains."""
        if self._training is None:
            self._training = tf.placeholder_with_default(False, [], "training")
            self.steps[self._training.name] = True
        return self._training

    def ids(self, name="ids", shape=()):
        """A placeholder of ids."""
        return self.fed(name, tf.int64, shape, lambda s: s.randint(0, WORDS, (ROWS,) + shape))

    def numbers(self, name="numbers", shape=(3,)):
        """A placeholder of numbers."""
        make = lambda s: s.normal(1.0, 2.0, (ROWS,) + shape)  # noqa: E731
        return self.fed(name, tf.float32, shape, make)

    def label(self):
        """The placeholder of the labels, which scoring lacks."""
        return self.fed("label", tf.float32, (), lambda s: s.randint(0, 2, ROWS))

    def words(self, name="words", shape=(), among=(b"a", b"b", b"c", b"d", b"")):
        """A placeholder of strings."""
        return self.fed(name, tf.string, shape, lambda s: s.choice(among, (ROWS,) + shape))

    def again(self, name):
        """A placeholder that there is already."""
        return tf.get_default_graph().get_tensor_by_name(name + ":0")

    def fed(self, name, dtype, shape, make):
        """A placeholder [None, *shape] and what it is fed."""
        kind = object if dtype == tf.string else dtype.as_numpy_dtype
        given = tf.placeholder(dtype, (None,) + tuple(shape), name)
        self.points.append(lambda state: {given.name: np.asarray(make(state), kind)})
        return given

    def bags(self, name="bags", least=1, words=None, weighted=False):
        """A sparse placeholder of `least` to 3 ids or words a row; if weighted, weights beside."""
        given = tf.sparse_placeholder(tf.string if words else tf.int64, [None, 3], name)
        weights = tf.placeholder(tf.float32, [None], "weights") if weighted else None

        def make(state):
            sizes = state.randint(least, 4, ROWS)
            places = [(row, k) for row, size in enumerate(sizes) for k in range(size)]
            values = state.choice(words or WORDS, len(places))
            found = {
                given.indices.name: np.array(places, np.int64).reshape(-1, 2),
                given.values.name: values.astype(object if words else np.int64),
            }
            if not given.dense_shape.op.type.startswith("Const"):
                found[given.dense_shape.name] = np.array([ROWS, 3], np.int64)
            if weighted:
                found[weights.name] = np.float32(state.uniform(0.5, 2, len(places)))
            return found

        self.points.append(make)
        if not weighted:
            return given
        return given, tf.SparseTensor(given.indices, weights, given.dense_shape)

    def batch(self, number):
        """{tensor's name: value} of what a batch is fed."""
        state = np.random.RandomState(number)
        return {name: value for make in self.points for name, value in make(state).items()}


def keep(form, folder):
    """Trains a form's job, and writes what TensorFlow computes."""
    (tf.enable_control_flow_v2 if form.control_flow == 2 else tf.disable_control_flow_v2)()
    with tf.Graph().as_default(), tf.variable_scope("", use_resource=form.resource):
        job = Job(form)
        found = job.build()
        config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
        config.graph_options.rewrite_options.disable_meta_optimizer = True  # takes half of the time
        with tf.Session(config=config) as session:
            kept = _trained(session, job, found, os.path.join(folder, "model.ckpt"))
    with open(os.path.join(folder, "said.txt"), "w") as file:
        file.write(form.words)
    np.savez(os.path.join(folder, "job.npz"), **kept)


def _trained(session, job, found, prefix):
    scores, loss, train_op = found
    session.run([tf.global_variables_initializer(), tf.tables_initializer()])
    session.run(tf.local_variables_initializer())
    for number in range(BEFORE):
        session.run(train_op, dict(job.batch(number), **job.steps))
    tf.train.Saver().save(session, prefix)
    rows = job.batch(50)
    rows.pop("label:0", None)
    variables = tf.global_variables()
    before = session.run(variables)
    kept = dict(under("rows", rows), scores=session.run(scores, rows))
    load(session, dict(zip(variables, before)))  # an output may wait for statistics to move
    for k in range(STEPS):
        fed = dict(job.batch(BEFORE + k), **job.steps)
        before = session.run(variables)
        kept["{}/loss".format(k)] = session.run(loss, fed)
        load(session, dict(zip(variables, before)))
        session.run(train_op, fed)
        kept.update(under("{}/fed".format(k), fed))
        kept.update(under("{}/after".format(k), whole(session)))
    return kept
