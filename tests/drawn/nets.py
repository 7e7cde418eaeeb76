"""What a job computes of its vectors: sequences, towers, experts, and their norms."""

import tensorflow.compat.v1 as tf

ACTIVATIONS = {
    "tanh": tf.tanh,
    "sigmoid": tf.sigmoid,
    "softplus": tf.nn.softplus,
    "elu": tf.nn.elu,
    "swish": tf.nn.swish,
}
MOVES = {
    "assign_sub": lambda old, new: tf.assign_sub(old, (old - new) * 0.1),
    "assign_add": lambda old, new: tf.assign_add(old, 0.1 * (new - old)),
    "kept": lambda old, new: tf.assign(old, old * 0.9 + new * 0.1),
    "towards": lambda old, new: tf.assign(old, old + (new - old) * 0.1),
    "added / 10": lambda old, new: tf.assign_add(old, (new - old) / 10.0),
}


class Nets:
    """Layers of one job."""

    def __init__(self, draw, training):
        self._draw, self._training = draw, training

    def sequence(self, vectors, lengths, candidate):
        """A vector [ROWS, n] of a history [ROWS, LENGTH, SIZE]."""
        form = self._draw.one("sequence", "mean", "attention", "GRU", "LSTM", "GRU both ways")
        there = tf.sequence_mask(lengths, vectors.shape[1], tf.float32)
        if form == "mean":
            total = tf.reduce_sum(vectors * tf.expand_dims(there, -1), 1)
            return total / tf.cast(tf.expand_dims(lengths, 1), tf.float32)
        if form == "attention":
            query = tf.tile(tf.expand_dims(candidate, 1), [1, vectors.shape[1], 1])
            both = tf.concat([query, vectors, query - vectors, query * vectors], 2)
            hidden = tf.layers.dense(both, 5, tf.sigmoid, name=self._draw.name("attention"))
            name = self._draw.name("attention")
            score = tf.layers.dense(hidden, 1, use_bias=False, name=name)[:, :, 0]
            weight = tf.nn.softmax(score + (there - 1.0) * 1e9)
            return tf.matmul(tf.expand_dims(weight, 1), vectors)[:, 0]
        cells = tf.nn.rnn_cell
        with tf.variable_scope(self._draw.name("rnn")):
            if form == "LSTM":
                _, state = tf.nn.dynamic_rnn(cells.LSTMCell(4), vectors, lengths, dtype=tf.float32)
                return state.h
            if form == "GRU":
                return tf.nn.dynamic_rnn(cells.GRUCell(4), vectors, lengths, dtype=tf.float32)[1]
            _, states = tf.nn.bidirectional_dynamic_rnn(
                cells.GRUCell(3), cells.GRUCell(3), vectors, lengths, dtype=tf.float32
            )
            return tf.concat(states, 1)

    def logit(self, vectors):
        """[ROWS] of the vectors of all fields."""
        x = tf.concat(vectors, 1)
        form = self._draw.one("net", "tower", "wide and deep", "crossed", "experts")
        if form == "experts":
            return self._experts(x)
        deep = self._dense(self._tower(x), 1)[:, 0]
        if form == "tower":
            return deep
        if form == "wide and deep":
            with tf.variable_scope("wide"):
                return deep + self._dense(x, 1)[:, 0]
        with tf.variable_scope("crossed"):
            weight, bias = (
                tf.get_variable(name, [x.shape[1], 1], initializer=tf.glorot_uniform_initializer())
                for name in ("weight", "bias")
            )
            crossed = x * tf.matmul(x, weight) + bias[:, 0] + x
        return deep + tf.reduce_sum(crossed, 1) * 0.1

    def _experts(self, x):
        experts = [self._tower(x) for _ in range(self._draw.one("experts", 2, 3))]
        stacked = tf.stack(experts, 1)
        tasks = []
        for _ in range(2):
            gate = tf.nn.softmax(self._dense(x, len(experts), bias=False))
            mixed = tf.reduce_sum(tf.expand_dims(gate, 2) * stacked, 1)
            tasks.append(self._dense(mixed, 1)[:, 0])
        return tasks[0] + tf.log(tf.sigmoid(tasks[1]))

    def _tower(self, x):
        with tf.variable_scope(self._draw.name("tower")):
            name = self._draw.one("activation", *ACTIVATIONS)
            for _ in range(self._draw.one("layers", 1, 2)):
                x = ACTIVATIONS[name](self._normalised(self._dense(x, 6, bias=False)))
            if self._draw.may("tied"):
                with tf.variable_scope("tied"):
                    kernel = tf.get_variable("kernel", [6, 6])
                x = tf.matmul(tf.tanh(tf.matmul(x, kernel)), kernel, transpose_b=True)
            if self._draw.may("cond"):
                before = x
                x = tf.cond(self._training, lambda: before * 0.9, lambda: before)
            return x

    def _dense(self, x, size, bias=True):
        """None before a norm or a softmax: the loss would not depend on it."""
        name = self._draw.name("dense")
        form = self._draw.one("dense", "layer", "kernel", "transposed")
        if form == "layer":
            return tf.layers.dense(x, size, use_bias=bias, name=name)
        turned = form == "transposed"
        shape = [size, int(x.shape[1])] if turned else [int(x.shape[1]), size]
        with tf.variable_scope(name):
            kernel = tf.get_variable("w", shape)
            found = tf.matmul(x, kernel, transpose_b=turned)
            return found + tf.get_variable("b", [size]) if bias else found

    def _normalised(self, x):
        form = self._draw.one("norm", "none", "batch", "batch by hand", "layer", "layer by hand")
        name = self._draw.name("norm")
        if form == "batch":
            return tf.layers.batch_normalization(
                x, momentum=0.9, training=self._training, name=name
            )
        if form == "layer":
            return tf.keras.layers.LayerNormalization(name=name)(x)
        if form == "none":
            return x
        with tf.variable_scope(name):
            gamma = tf.get_variable("gamma", [6], initializer=tf.ones_initializer())
            beta = tf.get_variable("beta", [6], initializer=tf.zeros_initializer())
            if form == "layer by hand":
                mean, variance = tf.nn.moments(x, [1], keep_dims=True)
                return (x - mean) * tf.rsqrt(variance + 1e-6) * gamma + beta
            return self._by_hand(x, gamma, beta)

    def _by_hand(self, x, gamma, beta):
        move = MOVES[self._draw.one("moved by", *MOVES)]
        old = [
            tf.get_variable(name, [6], initializer=first, trainable=False)
            for name, first in (
                ("moving_mean", tf.zeros_initializer()),
                ("moving_variance", tf.ones_initializer()),
            )
        ]
        new = tf.nn.moments(x, [0])
        for pair in zip(old, new):
            tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, move(*pair))
        mean, variance = (
            tf.cond(self._training, lambda a=a: a, lambda b=b: tf.identity(b))
            for a, b in zip(new, old)
        )
        return tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-3)
