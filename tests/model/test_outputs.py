"""Which tensors a module returns, and what is said where that cannot be told."""

import contextlib

import pytest
import tensorflow as tf

from migrate.graph.interface import find_interface
from migrate.graph.lowering import lower
from migrate.graph.metagraph import read_graph
from migrate.model.load import load_model
from migrate.model.outputs import find_outputs
from semisync.common.errors import BadInput, UsageError
from tests.model.zoo.read import models
from tests.support.require import shared

tf1 = tf.compat.v1


def written(folder):
    """The default graph, as a Saver writes its MetaGraph."""
    meta = str(folder / "model.meta")
    tf1.train.Saver().export_meta_graph(meta)
    return read_graph(meta)


def looked_up():
    """A table, and its rows of users, items and other items."""
    ids = [tf1.placeholder(tf.int64, [None], name=name) for name in ("user", "item", "other")]
    table = tf1.get_variable("table", [9, 4], use_resource=False)
    return [table, *(tf.nn.embedding_lookup(table, one) for one in ids)]


@pytest.mark.long
def test_of_a_model_with_one_loss_it_is_what_the_loss_is_given(zoo):
    for model in models(zoo):
        graph = lower(read_graph(model.meta))
        logits = model.said["outputs"].get("logits")
        try:
            chosen = list(find_outputs(graph, None))
        except BadInput as error:
            assert "name them with --output, such as" in str(error)
            assert model.said["name"] in ("esmm", "mmoe", "youtube_dnn")
        else:
            assert chosen == [logits], model.said["name"]


@pytest.mark.parametrize("loss", [tf.square, tf.abs])
def test_a_metric_that_needs_the_label_is_not_taken_for_the_prediction(loss, tmp_path):
    with tf.Graph().as_default():
        rows, label = (tf1.placeholder(tf.float32, (None, n), name=f"in{n}") for n in (3, 1))
        kernel = tf1.get_variable("kernel", (3, 1), use_resource=False)
        prediction = tf.matmul(rows, kernel, name="prediction")
        error = tf.subtract(label, prediction)
        tf1.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(loss(error)))
        tf.abs(error / label, name="percentage_error")
        graph = lower(written(tmp_path))
    assert list(find_outputs(graph, None)) == ["prediction:0"]


def test_a_distance_of_vectors_is_a_score_and_no_loss(tmp_path):
    with tf.Graph().as_default():
        rows, other = (tf1.placeholder(tf.float32, (None, n), name=f"in{n}") for n in (3, 2))
        kernel = tf1.get_variable("kernel", (3, 2), use_resource=False)
        tf.reduce_sum(tf.square(tf.matmul(rows, kernel) - other), axis=1, name="distance")
        graph = lower(written(tmp_path))
    assert list(find_outputs(graph, None)) == ["distance:0"]


@pytest.mark.parametrize("dense", [False, True])
def test_scores_of_a_softmax_within_the_batch_are_no_output(dense, tmp_path):
    with tf.Graph().as_default():
        users, items = (tf1.placeholder(tf.int64, [None], name=name) for name in ("u", "i"))
        vectors = []
        for name, ids in (("user", users), ("item", items)):
            table = tf1.get_variable(name, [9, 4])
            vectors.append(tf.identity(tf.nn.embedding_lookup(table, ids), name=name + "_vector"))
        scores = tf.matmul(*vectors, transpose_b=True)
        rows = tf.range(tf.shape(users)[0])
        if dense:
            losses = tf.nn.softmax_cross_entropy_with_logits(
                tf.one_hot(rows, tf.size(rows)), scores
            )
        else:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(rows, scores)
        tf1.train.AdagradOptimizer(0.1).minimize(tf.reduce_mean(losses))
        graph = lower(written(tmp_path))
    with pytest.raises(BadInput, match="name them with --output"):
        find_outputs(graph, None)


def _hinge(x, y):
    return tf.reduce_mean(tf.maximum(0.0, 1 - (2 * y - 1) * x))


def _softplus(x, y):
    return tf.reduce_mean(y * tf.nn.softplus(-x) + (1 - y) * tf.nn.softplus(x))


def _log_sigmoid(x, y):
    return -tf.reduce_mean(y * tf.math.log_sigmoid(x) + (1 - y) * tf.math.log_sigmoid(-x))


def _by_hand(x, y):
    return tf.reduce_mean(tf.nn.relu(x) - x * y + tf.math.log1p(tf.exp(-tf.abs(x))))


def _weighted(x, y):
    return tf.reduce_mean(tf1.nn.weighted_cross_entropy_with_logits(y, x, 3.0))


def _poisson(x, y):
    return tf.reduce_mean(tf.exp(x) - y * x)


def _percentage(x, y):
    return tf.reduce_mean(tf.abs((y - x) / (y + 1)))


def _halved(x, y):
    return tf.nn.l2_loss(y - x)


@pytest.mark.few(6)
@pytest.mark.parametrize("regularised", [False, True])
@pytest.mark.parametrize(
    "loss", [_hinge, _softplus, _log_sigmoid, _by_hand, _weighted, _poisson, _percentage, _halved]
)
def test_what_a_loss_predicts_with_is_told_by_what_the_model_goes_through(
    loss, regularised, tmp_path
):
    with tf.Graph().as_default():
        table, users, items, others = looked_up()
        label = tf1.placeholder(tf.float32, [None], name="label")
        bias = tf1.get_variable("bias", [], use_resource=False)
        biases = bias * tf.ones_like(label)  # of the labels' size alone
        scores = tf.add(tf.reduce_sum(users * items, 1), biases, name="scores")
        tf.reduce_sum(users * others, 1, name="of_another")  # which nothing reads
        total = loss(scores, label)
        if regularised:
            total += 0.01 * (tf.nn.l2_loss(users) + tf.nn.l2_loss(table))
        tf1.train.AdagradOptimizer(0.1).minimize(total)
        graph = lower(written(tmp_path))
    assert list(find_outputs(graph, None)) == ["scores:0"]


def test_a_probability_that_a_loss_divides_by_its_sum_is_the_score(tmp_path):
    with tf.Graph().as_default():
        _, users, items, _ = looked_up()
        label = tf1.placeholder(tf.float32, [None], name="label")
        scores = tf.add(tf.reduce_sum(users * items, 1), 0.0, name="scores")
        likely = tf.sigmoid(scores)
        tf1.metrics.accuracy(label, tf.round(likely))
        # as Keras' categorical_crossentropy of TensorFlow 1.15 writes it
        shares = tf.clip_by_value(likely / tf.reduce_sum(likely, -1, True), 1e-7, 1 - 1e-7)
        loss = -tf.reduce_sum(label * tf.math.log(shares), -1)
        tf1.train.AdagradOptimizer(0.1).minimize(loss)
        graph = lower(written(tmp_path))
    assert list(find_outputs(graph, None)) == ["scores:0"]


def test_a_loss_without_labels_tells_no_score(tmp_path):
    with tf.Graph().as_default():
        table, users, items, others = looked_up()
        better, worse = (tf.reduce_sum(users * one, 1) for one in (items, others))
        loss = -tf.reduce_mean(tf.math.log_sigmoid(better - worse))
        tf.reduce_sum(items * others, 1, name="likeness")  # which nothing reads
        tf1.train.AdagradOptimizer(0.1).minimize(loss)
        graph = lower(written(tmp_path))
    with pytest.raises(BadInput, match="name them with --output"):
        find_outputs(graph, None)


def test_the_difference_of_two_scores_in_a_sigmoid_is_no_output(tmp_path):
    with tf.Graph().as_default():
        table, users, items, others = looked_up()
        better, worse = (tf.reduce_sum(users * one, 1) for one in (items, others))
        loss = -tf.reduce_mean(tf.math.log(tf.sigmoid(better - worse) + 1e-8))
        tf.matmul(users, table, transpose_b=True, name="of_all")
        tf1.train.AdagradOptimizer(0.1).minimize(loss)
        graph = lower(written(tmp_path))
    with pytest.raises(BadInput, match="name them with --output, such as of_all:0$"):
        find_outputs(graph, None)


@pytest.mark.parametrize("clicks", ["logits", "probability"])
def test_a_probability_of_both_of_two_tasks_is_an_output_beside_theirs(clicks, tmp_path):
    with tf.Graph().as_default():
        rows, click, buy = (tf1.placeholder(tf.float32, (None, n)) for n in (3, 1, 1))
        names = [("kernel_click", "clicks"), ("kernel_buy", "buys")]
        logits = [
            tf.matmul(rows, tf1.get_variable(kernel, (3, 1), use_resource=False), name=name)
            for kernel, name in names
        ]
        both = tf.multiply(*(tf.sigmoid(one) for one in logits), name="both")
        if clicks == "logits":
            loss = tf1.losses.sigmoid_cross_entropy(click, logits[0])
        else:
            loss = tf1.losses.log_loss(click, tf.sigmoid(logits[0], name="clicked"))
        loss += tf1.losses.log_loss(buy, both)
        tf1.train.AdagradOptimizer(0.1).minimize(loss)
        graph = written(tmp_path)
    with pytest.raises(BadInput, match="name them with --output, such as .*both:0"):
        find_outputs(lower(graph), None)
    chosen = {one.tensor for one in find_interface(graph).outputs if one.chosen}
    assert chosen == {"both:0", "clicks:0" if clicks == "logits" else "clicked:0"}


def test_what_depends_on_nothing_that_is_fed_is_no_output(tmp_path):
    with tf.Graph().as_default():
        user = tf1.placeholder(tf.int64, [None], name="user")
        table = tf1.get_variable("table", [9, 4], use_resource=False)
        tf.sigmoid(tf.matmul(tf.ones([9, 9]), table), name="spread")
        tf.reduce_sum(tf.nn.embedding_lookup(table, user), 1, name="score")
        graph = lower(written(tmp_path))
    assert list(find_outputs(graph, None)) == ["score:0"]


@pytest.mark.long
def test_inspect_has_the_output_of_the_conversion_first(zoo):
    for model in models(zoo):
        graph = read_graph(model.meta)
        with contextlib.suppress(BadInput):
            (chosen,) = find_outputs(lower(graph), None)
            assert find_interface(graph).outputs[0].tensor == chosen, model.said["name"]


def test_of_a_saved_model_they_are_its_signatures(zoo):
    saved = zoo / "wide_and_deep" / "exports" / "simple"
    graph = read_graph(str(next(saved.rglob("saved_model.pb"))))
    named = graph.signatures["serving_default"].outputs
    assert set(find_outputs(graph, None)) == set(named)


def test_a_name_that_is_not_there_is_refused_with_one_that_is(zoo):
    (model,) = [model for model in models(zoo) if model.said["name"] == "dcn"]
    with pytest.raises(UsageError, match="has no tensor 'nonsense'"):
        load_model(model.prefix, output="nonsense")
    with pytest.raises(UsageError, match="did you mean 'dcn/strided_slice'"):
        load_model(model.prefix, output="strided_slice")
    for output in ("dcn:x", "dcn:\N{SUPERSCRIPT TWO}"):
        with pytest.raises(UsageError, match=f"'{output}' is not the name of a tensor"):
            load_model(model.prefix, output=output)


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "prefix, output",
    [
        ("criteo_tf_tile/model.ckpt-40000", None),
        ("criteo_tf_tile/tile/model.ckpt-0", None),
        ("criteo_tf_tile/tile/model.ckpt-40000", None),
        ("haiy_dist_ps/model.ckpt-504", None),
        ("haiy_dist_ps/model.ckpt-6", None),
        ("joonyoung_dist_2shards/model.ckpt-0", None),
        ("princewen_ffm/FFM-0", None),
        ("tf_session_bundle_v1_v2/half_plus_two_ckpt_v2/00000123/export", "y"),
        ("xdl_blaze_model/model.ckpt", None),
    ],
)
def test_every_public_graph_with_its_values_converts_unedited(prefix, output):
    module = load_model(shared("models") / prefix, output=output)
    assert list(module.parameters())


def test_a_graph_without_a_model_is_refused():
    prefix = shared("models") / "tf_feature_column_embedding" / "testdata" / "embedding.ckpt"
    with pytest.raises(BadInput, match="no loss with labels and no end that is a score"):
        load_model(prefix)
