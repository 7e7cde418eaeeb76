"""Models with loops as they are written for TensorFlow 1.15: write_models.py FOLDER VERSION NAME...

FOLDER/NAME of each: model.* with a training op where it can be trained, feeds.npz, and expected.npz
with the outputs and the gradients of the loss, d/VARIABLE.
"""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf

rnn, seq2seq = tf.nn.rnn_cell, tf.contrib.seq2seq
RANDOM = np.random.RandomState(0)


def hierarchical():
    """Users' sessions of items: a GRU over each session in a map_fn over users, one over theirs."""
    items = tf.placeholder(tf.int32, [None, None, None], name="items")
    lengths = tf.placeholder(tf.int32, [None, None], name="lengths")
    sessions = tf.placeholder(tf.int32, [None], name="sessions")
    table = tf.get_variable("table", [50, 6])
    cell = rnn.GRUCell(5, name="session")
    cell.build((None, 6))

    def of_user(given):
        found = tf.nn.embedding_lookup(table, given[0])
        return tf.nn.dynamic_rnn(cell, found, given[1], dtype=tf.float32)[1]

    states = tf.map_fn(of_user, (items, lengths), dtype=tf.float32)
    states.set_shape([None, None, 5])
    _, user = tf.nn.dynamic_rnn(rnn.GRUCell(4, name="user"), states, sessions, dtype=tf.float32)
    tf.layers.dense(user, 3, name="y")
    feeds = {"items": _integers(50, 3, 4, 5), "lengths": 1 + _integers(5, 3, 4)}
    return ["y/BiasAdd"], {**feeds, "sessions": np.int32([4, 2, 1])}


def stacked():
    """Bidirectional layers over each other, and two cells in one loop."""
    x = tf.placeholder(tf.float32, [None, None, 6], name="x")
    lengths = tf.placeholder(tf.int32, [None], name="lengths")
    ways = [[rnn.LSTMCell(5), rnn.GRUCell(4)] for _ in range(2)]
    stack = tf.contrib.rnn.stack_bidirectional_dynamic_rnn
    found, _, _ = stack(*ways, inputs=x, sequence_length=lengths, dtype=tf.float32)
    both = rnn.MultiRNNCell([rnn.LSTMCell(4), rnn.GRUCell(3)])
    found, _ = tf.nn.dynamic_rnn(both, found, lengths, dtype=tf.float32)
    tf.identity(found, name="y")
    return ["y"], {"x": _floats(3, 5, 6), "lengths": np.int32([5, 1, 3])}


def tagger():
    """A CRF: its likelihood, and Viterbi's decoding."""
    x = tf.placeholder(tf.float32, [None, None, 6], name="x")
    lengths = tf.placeholder(tf.int32, [None], name="lengths")
    labels = tf.placeholder(tf.int32, [None, None], name="labels")
    found, _ = tf.nn.dynamic_rnn(rnn.LSTMCell(5), x, lengths, dtype=tf.float32)
    scores = tf.layers.dense(found, 4)
    likelihood, moves = tf.contrib.crf.crf_log_likelihood(scores, labels, lengths)
    tags, best = tf.contrib.crf.crf_decode(scores, moves, lengths)
    for name, tensor in [("y", likelihood), ("tags", tags), ("best", best)]:
        tf.identity(tensor, name=name)
    feeds = {"x": _floats(3, 5, 6), "lengths": np.int32([5, 1, 3]), "labels": _integers(4, 3, 5)}
    return ["y", "best", "tags"], feeds


def beams():
    """A beam search over a cell with attention."""
    table, states, last, lengths, feeds = _encoded()
    tile = seq2seq.tile_batch
    attention = seq2seq.BahdanauAttention(5, tile(states, 3), tile(lengths, 3))
    cell = seq2seq.AttentionWrapper(rnn.GRUCell(5), attention, 4)
    rows = tf.shape(last)[0]
    start = cell.zero_state(rows * 3, tf.float32).clone(cell_state=tile(last, 3))
    first = tf.fill([rows], 1)
    search = seq2seq.BeamSearchDecoder(cell, table, first, 2, start, 3, tf.layers.Dense(8))
    found, state, _ = seq2seq.dynamic_decode(search, maximum_iterations=9)
    tf.identity(found.predicted_ids, name="ids")
    tf.identity(state.log_probs, name="probabilities")
    return ["ids", "probabilities"], feeds


def tree():
    """The beams of random searches, some of which end early."""
    shapes = {"steps": [9, 4, 3], "parents": [9, 4, 3], "lengths": [4]}
    given = [tf.placeholder(tf.int32, shape, name=name) for name, shape in shapes.items()]
    found = tf.contrib.seq2seq.gather_tree(*given, end_token=2)
    tf.identity(found, name="y")
    tf.get_variable("unused", [1])
    feeds = {"steps": _integers(8, 9, 4, 3), "parents": _integers(3, 9, 4, 3)}
    return ["y"], {**feeds, "lengths": np.int32([9, 1, 0, 12])}


def teacher():
    """A decoder that is told the words before, as it is trained."""
    table, states, last, lengths, feeds = _encoded()
    words = tf.placeholder(tf.int32, [None, None], name="words")
    told = tf.placeholder(tf.int32, [None], name="told")
    helper = seq2seq.TrainingHelper(tf.nn.embedding_lookup(table, words), told)
    attention = seq2seq.LuongAttention(5, states, lengths)
    cell = seq2seq.AttentionWrapper(rnn.GRUCell(5), attention, 4)
    start = cell.zero_state(tf.shape(last)[0], tf.float32).clone(cell_state=last)
    decoder = seq2seq.BasicDecoder(cell, helper, start, tf.layers.Dense(8))
    found, _, _ = seq2seq.dynamic_decode(decoder)
    tf.identity(found.rnn_output, name="y")
    return ["y"], {**feeds, "words": _integers(8, 3, 4), "told": np.int32([4, 3, 2])}


def raw():
    """tf.nn.raw_rnn, which reads its input in a branch."""
    x = tf.placeholder(tf.float32, [None, 5, 6], name="x")
    lengths = tf.placeholder(tf.int32, [None], name="lengths")
    steps = tf.TensorArray(tf.float32, 5).unstack(tf.transpose(x, [1, 0, 2]))
    cell, rows = rnn.LSTMCell(4), tf.shape(x)[0]

    def next_step(time, output, state, _):
        done = time >= lengths
        given = tf.cond(tf.reduce_all(done), lambda: tf.zeros([rows, 6]), lambda: steps.read(time))
        given.set_shape([None, 6])
        state = cell.zero_state(rows, tf.float32) if output is None else state
        return done, given, state, output, None

    found, _, _ = tf.nn.raw_rnn(cell, next_step)
    tf.transpose(found.stack(), [1, 0, 2], name="y")
    return ["y"], {"x": _floats(3, 5, 6), "lengths": np.int32([5, 2, 3])}


def boxes():
    """The best boxes of each image."""
    x = tf.placeholder(tf.float32, [None, 8, 6], name="x")
    found = tf.nn.sigmoid(tf.layers.dense(x, 4))
    corners = tf.concat([found[..., :2], found[..., :2] + found[..., 2:]], -1)
    scores = tf.layers.dense(x, 1)[..., 0]

    def of_image(given):
        best, count = tf.image.non_max_suppression_padded(
            *given, max_output_size=4, iou_threshold=0.4, pad_to_max_output_size=True
        )
        kept = tf.cast(tf.sequence_mask(count, 4), tf.float32)
        return tf.gather(given[0], best) * tf.expand_dims(kept, 1)

    tf.identity(tf.map_fn(of_image, (corners, scores), dtype=tf.float32), name="y")
    return ["y"], {"x": _floats(3, 8, 6)}


def _encoded():
    ids = tf.placeholder(tf.int32, [None, None], name="ids")
    lengths = tf.placeholder(tf.int32, [None], name="lengths")
    table = tf.get_variable("table", [8, 6], initializer=tf.random_normal_initializer())
    cell = rnn.GRUCell(5, name="encoder")
    found = tf.nn.embedding_lookup(table, ids)
    states, last = tf.nn.dynamic_rnn(cell, found, lengths, dtype=tf.float32)
    return table, states, last, lengths, {"ids": _integers(8, 3, 5), "lengths": np.int32([5, 2, 4])}


def _integers(limit, *shape):
    return RANDOM.randint(0, limit, shape).astype(np.int32)


def _floats(*shape):
    return RANDOM.randn(*shape).astype(np.float32)


TRAINED = [hierarchical, stacked, tagger, teacher, raw]


def main(folder, version, *names):
    (tf.enable_control_flow_v2 if version == "2" else tf.disable_control_flow_v2)()
    for build in map(globals().get, names):
        with tf.Graph().as_default() as graph, tf.Session() as session:
            tf.set_random_seed(1)
            names, feeds = build()
            fetched = {name: graph.get_tensor_by_name(name + ":0") for name in names}
            if build in TRAINED:
                loss = tf.reduce_sum(tf.square(fetched[names[0]]), name="loss")
                optimizer = tf.train.GradientDescentOptimizer(0.1)
                gradients = optimizer.compute_gradients(loss)
                optimizer.apply_gradients(gradients)
                for gradient, variable in gradients:
                    fetched["d/" + variable.op.name] = tf.convert_to_tensor(gradient)
            session.run(tf.global_variables_initializer())
            found = session.run(fetched, {name + ":0": value for name, value in feeds.items()})
            path = os.path.join(folder, build.__name__)
            tf.train.Saver().save(session, os.path.join(path, "model"))
            np.savez(os.path.join(path, "feeds.npz"), **feeds)
            np.savez(os.path.join(path, "expected.npz"), **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
