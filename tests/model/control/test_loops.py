"""Where a loop starts, what runs in each of its rounds, and what of loops is refused."""

import numpy
import pytest
import tensorflow
import torch

from migrate.model.load import load_model
from semisync.common.errors import BadInput, UsageError
from tests.support.control_flow import control_flow

tf = tensorflow.compat.v1
X = numpy.array([1.0, 2.0], numpy.float32)


@pytest.fixture(params=[1, 2], ids=["dataflow", "functions"])
def converted(request, tmp_path):
    """A function from what builds an output of x to (TensorFlow's value, the torch module)."""

    def convert(build, output="y"):
        with control_flow(request.param), tf.Graph().as_default(), tf.Session() as session:
            x = tf.placeholder(tf.float32, [2], name="x")
            built = tf.identity(build(x), name="y")
            tf.get_variable("w", [2])
            session.run(tf.global_variables_initializer())
            tf.train.Saver().save(session, str(tmp_path / "model"))
            value = session.run(built, {x: X})
        return value, load_model(tmp_path / "model", output=output)

    return convert


def _rounds(count, body, *starts):
    """The last variable of a loop of so many rounds, whose body takes counter and variables."""
    loop = tf.while_loop(lambda i, *_: i < count, lambda i, *v: (i + 1, *body(i, *v)), [0, *starts])
    return loop[-1]


def _doubled():
    """8, by a loop that depends on nothing around it."""
    return _rounds(3, lambda j, y: [y * 2.0], 1.0)


def inner_loop_of_constants(x):
    inner = lambda i, y: _rounds(i, lambda j, s: [s + y], tf.zeros([2]))  # noqa: E731
    return _rounds(4, lambda i, y: [y + inner(i, y)], x)


def inner_loop_of_nothing_else(x):
    return _rounds(3, lambda i, y: [y * 0.5 + _doubled()], x)


def loop_in_a_branch(x):
    return x + tf.cond(x[0] > 0.0, _doubled, lambda: 5.0)


def function_in_a_loop(x):
    if not tf.control_flow_v2_enabled():
        return inner_loop_of_nothing_else(x)
    called = tensorflow.function(_doubled)
    return _rounds(3, lambda i, y: [y * 0.5 + called()], x)


def text_that_goes_round(x):
    ends = lambda: tf.cond(x[1] > x[0], lambda: tf.constant("a"), lambda: tf.constant("b"))  # noqa: E731
    joined = _rounds(3, lambda i, y: [tf.strings.join([y, ends()])], tf.constant("c"))
    return tf.strings.to_hash_bucket_fast(joined, 1000)


def padded_suppression(x):
    corners = [x, x + 1.0, x, x + 1.3, x + 0.1, x + 1.2]
    boxes = tf.reshape(tf.concat(corners, 0), [-1, 4])
    scores = tf.constant([0.1, 0.3, 0.2])
    return tf.image.non_max_suppression_padded(boxes, scores, 3, pad_to_max_output_size=True)[0]


@pytest.mark.parametrize(
    "build",
    [
        inner_loop_of_constants,
        inner_loop_of_nothing_else,
        loop_in_a_branch,
        function_in_a_loop,
        text_that_goes_round,
        padded_suppression,
    ],
    ids=lambda build: build.__name__,
)
@pytest.mark.few(4)
def test_it_gives_what_tensorflow_gives(converted, build):
    value, model = converted(build)
    numpy.testing.assert_allclose(model({"x": torch.from_numpy(X)}), value, rtol=1e-6)


def test_random_values_in_a_body_are_drawn_in_every_round(converted):
    drawn = lambda i: tf.random_normal([2])  # noqa: E731
    _, model = converted(lambda x: tf.map_fn(drawn, tf.range(8), dtype=tf.float32) + x)
    assert len(model({"x": torch.zeros(2)}).unique()) == 16


def test_a_mask_that_is_drawn_before_a_loop_is_one_for_all_rounds(converted):
    def dropped(x):
        drawn = tf.random_uniform([64])
        rows = tf.ones([5, 64]) * x[0]
        return tf.map_fn(lambda row: row / 0.75 * tf.floor(0.75 + drawn), rows)

    _, model = converted(dropped)
    rows = model.train()({"x": torch.ones(2)})
    assert torch.equal(rows, rows[:1].expand(5, 64))
    assert 0 < (rows == 0).sum() < rows.numel() and rows.max() == 1 / 0.75
    assert torch.equal(model.eval()({"x": torch.ones(2)}), torch.ones(5, 64))


def test_an_output_inside_of_a_loop_is_refused(converted):
    inside = lambda x: _rounds(3, lambda i, y: [tf.add(y, x, name="inside")], x)  # noqa: E731
    with pytest.raises((BadInput, UsageError), match="lies in a branch or a loop|has no tensor"):
        converted(inside, "while/inside")


def test_an_input_that_a_loop_reads_in_every_round_is_refused(converted):
    def build(x):
        iterator = tf.data.make_one_shot_iterator(tf.data.Dataset.from_tensors(X).repeat())
        return _rounds(3, lambda i, y: [y + iterator.get_next()], x)

    with pytest.raises(BadInput, match="IteratorGetNext.* brings new features in every round"):
        converted(build)


def test_two_loops_in_one_frame_are_refused_as_tensorflow_refuses_them(tmp_path):
    with control_flow(1), tf.Graph().as_default() as once:
        tf.identity(inner_loop_of_nothing_else(tf.placeholder(tf.float32, [2], name="x")), name="y")
    with tf.Graph().as_default() as twice:
        names = [f"{scope}/y:0" for scope in "ab"]
        for scope in "ab":  # leaves the names of the frames as they are
            tf.import_graph_def(once.as_graph_def(), name=scope)
        tf.add_n([twice.get_tensor_by_name(name) for name in names], name="sum")
    (tmp_path / "frozen.pb").write_bytes(twice.as_graph_def().SerializeToString())
    with pytest.raises(BadInput, match="control flow that neither tf.cond nor tf.while_loop"):
        load_model(tmp_path / "frozen.pb", output="sum")
