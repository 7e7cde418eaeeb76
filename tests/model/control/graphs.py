"""The graphs of `programs`: built, run and kept by whichever TensorFlow there is."""

import json
import os

import numpy
from tensorflow.compat import v1 as tf

SIZE = 3
FEEDS = [([0.5, -1.0, 2.0], 3), ([-0.3, 0.1, -0.2], 1)]  # the vector, and the rows of the matrix


def keep(program, folder):
    """Writes a program's graph and values, and what TensorFlow computes, into `folder`.

    The files are model.* or frozen.pb; program.json; and expected.npz: by number of the feed,
    outputs NUMBER/OUTPUT and gradients of their sum, NUMBER/d/x and NUMBER/d/w; the variable after
    each step of training, w/NUMBER. With 1.15, which ends with a TypeError or aborts, the gradients
    of a resource that a branch or a loop reads are left out of all three.
    """
    if tf.__version__.startswith("1.") and program["resource"]:
        kept = {"trained": "model"}.get(program["kept"], program["kept"])
        program = {**program, "gradients": False, "kept": kept}
    os.makedirs(folder)
    with tf.Graph().as_default(), tf.Session(config=_ONE_THREAD) as session:
        scope = _Scope(program)
        names = ["y", "z"][: len(program["outputs"])]
        outputs = [
            tf.identity(scope.build(one), name=name) for name, one in zip(names, program["outputs"])
        ]
        fetched = dict(zip(names, outputs))
        if program["gradients"]:
            total = sum(map(tf.reduce_sum, outputs))
            for name, gradient in zip("xw", tf.gradients(total, [scope.x, scope.w])):
                fetched.update({} if gradient is None else {"d/" + name: gradient})
        if program["kept"] == "trained":
            loss = tf.add_n([tf.reduce_sum(tf.square(one)) for one in outputs], name="loss")
            optimizer = tf.train.AdagradOptimizer(0.1)
            ((gradient, _),) = optimizer.compute_gradients(loss, [scope.w])
            if gradient is None:
                program = {**program, "kept": "model"}
            else:
                train = optimizer.apply_gradients([(gradient, scope.w)])
        session.run(tf.global_variables_initializer())
        expected = {}
        for number, feed in enumerate(FEEDS):
            found = session.run(fetched, dict(zip([scope.x, scope.fed], fed(feed))))
            expected.update(("{}/{}".format(number, name), value) for name, value in found.items())
        if program["kept"] == "frozen":
            definition = tf.graph_util.convert_variables_to_constants(
                session, session.graph.as_graph_def(), names
            )
            with open(os.path.join(folder, "frozen.pb"), "wb") as file:
                file.write(definition.SerializeToString())
        else:
            tf.train.Saver().save(session, os.path.join(folder, "model"))
        if program["kept"] == "trained":
            for number, feed in enumerate(FEEDS):
                session.run(train, dict(zip([scope.x, scope.fed], fed(feed))))
                expected["w/{}".format(number)] = session.run(scope.w)
    numpy.savez(os.path.join(folder, "expected.npz"), **expected)
    with open(os.path.join(folder, "program.json"), "w") as file:
        json.dump(program, file)


def fed(feed):
    """The arrays of a feed: the vector and the matrix."""
    vector, rows = feed
    matrix = numpy.linspace(-1.0, 1.0, rows * SIZE).reshape(rows, SIZE)
    return numpy.array(vector, numpy.float32), matrix.astype(numpy.float32)


_ONE_THREAD = tf.ConfigProto(inter_op_parallelism_threads=1, intra_op_parallelism_threads=1)
# Grappler leaves some of these graphs without a value for an output.
_ONE_THREAD.graph_options.rewrite_options.disable_meta_optimizer = True


class _Scope:
    """What an expression may name: the values and counters of the branches and loops around."""

    def __init__(self, program):
        self.x = tf.placeholder(tf.float32, [SIZE], name="x")
        self.fed = tf.placeholder(tf.float32, [None, SIZE], name="m")
        values = tf.constant([0.5, -0.25, 0.75])
        self.w = tf.get_variable("w", initializer=values, use_resource=program["resource"])
        self.values, self.counters = [], []

    def within(self, values, counters, build):
        """`build` with more values and counters."""
        before = self.values, self.counters
        self.values, self.counters = [*values, *self.values], [*counters, *self.counters]
        try:
            return build()
        finally:
            self.values, self.counters = before

    def build(self, expression):
        """The tensor of an expression, of three floats."""
        return getattr(self, "_" + expression[0])(*expression[1:])

    def _const(self, value):
        return tf.constant([value] * SIZE)

    def _x(self):
        return self.x

    def _w(self):
        return tf.identity(self.w)

    def _value(self, number):
        return self.values[number % len(self.values)] if self.values else self.x

    def _op(self, name, first, second):
        operators = {"add": tf.add, "mul": tf.multiply, "sub": tf.subtract, "max": tf.maximum}
        return tf.tanh(operators[name](self.build(first), self.build(second)))

    def _counter(self, number):
        return self.counters[number % len(self.counters)] if self.counters else tf.constant(2)

    def _cond(self, predicate, first, second):
        if predicate[0] == "positive":
            given = tf.reduce_sum(self.build(predicate[1])) > 0.0
        else:
            given = self._counter(predicate[1]) < predicate[2]
        return tf.cond(given, lambda: self.build(first), lambda: self.build(second))

    def _while(self, count, starts, following, which):
        if count[0] == "data":
            count = 1 + tf.cast(tf.reduce_sum(self.build(count[1])) > 0.0, tf.int32)
        else:
            count = count[1] if count[0] == "number" else self._counter(count[1])

        def body(i, *values):
            return [i + 1, *self.within(values, [i], lambda: list(map(self.build, following)))]

        starts = [tf.constant(0), *map(self.build, starts)]
        last = tf.while_loop(lambda i, *_: i < count, body, starts)
        if which < len(starts) - 1:
            return tf.tanh(last[1 + which])
        return tf.cast(last[0], tf.float32) * tf.constant([0.1] * SIZE)

    def _elements(self, kind, given):
        if kind == "stack":
            return tf.stack(list(map(self.build, given)))
        return tf.range(given) if kind == "range" else self.fed

    def _row(self, row, *values):
        """(values, counters) of an element: a row, or a number of a range."""
        if row.dtype == tf.int32:
            return [tf.cast(row, tf.float32) * tf.ones([SIZE]), *values], [row]
        return [row, *values], []

    def _map_fn(self, elements, start, body):
        assert start is None
        step = lambda row: self.within(*self._row(row), build=lambda: self.build(body))  # noqa: E731
        return tf.reduce_sum(tf.map_fn(step, self._elements(*elements), dtype=tf.float32), 0)

    def _fold(self, function, elements, start, body):
        def step(value, row):
            return self.within(*self._row(row, value), build=lambda: self.build(body))

        start = None if start is None else self.build(start)
        return function(step, self._elements(*elements), initializer=start)

    def _scan(self, *given):
        return tf.reduce_mean(self._fold(tf.scan, *given), 0)

    def _foldl(self, *given):
        return self._fold(tf.foldl, *given)

    def _foldr(self, *given):
        return self._fold(tf.foldr, *given)

    def _dynamic_rnn(self, elements, length, body):
        rows = tf.expand_dims(self._elements(*elements), 0)
        if length is not None:
            length = length[1] if length[0] == "number" else self._counter(length[1])
            length = tf.reshape(tf.minimum(length, tf.shape(rows)[1]), [1])
        cell = _Cell(lambda values: self.within(values, [], lambda: self.build(body)))
        outputs, state = tf.nn.dynamic_rnn(cell, rows, sequence_length=length, dtype=tf.float32)
        return tf.tanh(tf.reduce_sum(outputs, [0, 1]) + tf.reshape(state, [SIZE]))


class _Cell:
    """As much of an RNNCell as dynamic_rnn asks for."""

    output_size = state_size = SIZE

    def __init__(self, step):
        self._step = step

    def zero_state(self, batch_size, dtype):
        return tf.zeros([batch_size, SIZE], dtype)

    def __call__(self, inputs, state, scope=None):
        values = [tf.reshape(one, [SIZE]) for one in (inputs, state)]
        output = tf.reshape(self._step(values), [1, SIZE])
        return output, tf.tanh(output + 0.5 * state)
