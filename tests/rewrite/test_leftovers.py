"""What a rewrite leaves to every batch is a warning that names its variables, or a refusal."""

import json

import numpy as np
import pytest
from tensorflow.python.training import moving_averages

import graph_rewrite
import semisync
from semisync import cli
from semisync.common.compat import tf
from semisync.common.errors import BadInput, UsageError
from tests.rewrite import zoo
from tests.wrap.one_process import PATIENCE

ROWS, WIDTH = 8, 3
both = pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])


def batch_norm(**options):
    """tf.layers' BatchNorm, unfused."""

    def build(x):
        return zoo.layers.batch_normalization(x, training=True, name="bn", fused=False, **options)

    return build


def weighted(x):
    """BatchNorm over rows that count by weights."""
    mean, variance = tf.nn.weighted_moments(x, [0], tf.abs(x[:, :1]) + 1.0)
    for name, new in (("mean", mean), ("variance", variance)):
        old = tf.get_variable("bn/moving_" + name, [WIDTH], trainable=False)
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign_sub(old, 0.1 * (old - new)))
    return tf.nn.batch_normalization(x, mean, variance, None, None, 1e-3)


def zero_debiased(x):
    """An average of what is fed, by TensorFlow's function for it."""
    mean = tf.get_variable("seen", [WIDTH], trainable=False)
    update = moving_averages.assign_moving_average(mean, tf.reduce_mean(x, 0), 0.9)
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, update)
    return x


def spectral_norm(x):
    """A kernel divided by its largest singular value, which one step per batch estimates."""
    kernel = tf.get_variable("inner", [WIDTH, WIDTH])
    vector = tf.get_variable("u", [1, WIDTH], trainable=False)
    right = tf.nn.l2_normalize(tf.matmul(vector, kernel, transpose_b=True))
    left = tf.nn.l2_normalize(tf.matmul(right, kernel))
    sigma = tf.matmul(tf.matmul(right, kernel), left, transpose_b=True)
    with tf.control_dependencies([tf.assign(vector, left)]):
        return tf.matmul(x, kernel / tf.squeeze(sigma))


def centres(x):
    """Rows that follow the features of their class."""
    classes = tf.cast(tf.greater(x[:, 0], 0), tf.int32)
    rows = tf.get_variable("centres", [2, WIDTH], trainable=False)
    change = 0.5 * (tf.gather(rows, classes) - x)
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.scatter_sub(rows, classes, change))
    return x


def clipped(x):
    """A kernel that is clipped before every step, not behind it."""
    kernel = tf.get_variable("inner", [WIDTH, WIDTH], initializer=tf.ones_initializer())
    clip = kernel.assign(tf.clip_by_value(kernel, -0.5, 0.5))
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, clip)
    return tf.matmul(x, kernel)


def scoped(scope, names):
    return ["{}/{}".format(scope, name) for name in names.split()]


LEFTOVERS = {
    "renorm": (
        batch_norm(renorm=True),
        scoped("bn", "moving_mean moving_stddev moving_variance renorm_mean renorm_stddev"),
    ),
    "virtual batch": (
        batch_norm(virtual_batch_size=4),
        scoped("bn", "moving_mean moving_variance"),
    ),
    "weighted": (weighted, scoped("bn", "moving_mean moving_variance")),
    "zero-debiased": (zero_debiased, ["seen", "seen/biased", "seen/local_step"]),
    "spectral norm": (spectral_norm, ["u"]),
    "centres": (centres, ["centres"]),
    "clip": (clipped, ["inner"]),
}
each = pytest.mark.parametrize("kind", LEFTOVERS)


def export(build, resource=False, moved=True):
    """The MetaGraphDef of a job.

    Args:
        build: x -> what the last layer takes.
        moved: whether the train op waits for UPDATE_OPS.
    """
    with tf.Graph().as_default(), tf.variable_scope("", use_resource=resource):
        x = tf.placeholder(tf.float32, [ROWS, WIDTH], "x")
        step = tf.train.get_or_create_global_step()
        kernel = tf.get_variable("kernel", [WIDTH, 1])
        loss = tf.reduce_mean(tf.square(tf.matmul(build(x), kernel) - 1.0))
        updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
        with tf.control_dependencies(updates if moved else []):
            tf.train.GradientDescentOptimizer(0.1).minimize(loss, step, name="train")
        return tf.train.export_meta_graph()


def rewrite(exported, batches_per_step, **options):
    """The rewritten MetaGraphDef and its report, without the warning of a graph without devices."""
    meta, report = graph_rewrite.semi_synchronize(exported, batches_per_step, paced=True, **options)
    report.warnings = [each for each in report.warnings if "has a device" not in each]
    return meta, report


def batches(count):
    return np.random.RandomState(0).randn(count, ROWS, WIDTH).astype(np.float32)


def changed(meta, names, count, fetch=()):
    """Which variables, of these names, some batches of a rewritten job change, a list."""
    with tf.Graph().as_default():
        tf.train.import_meta_graph(meta)
        variables = [v for v in tf.global_variables() if v.op.name in names]
        hook = semisync.restore_hook(True, patience=PATIENCE)
        with tf.train.MonitoredTrainingSession(hooks=[hook]) as session:
            before = session.run(variables)
            for x in batches(count):
                session.run(["train", *fetch], {"x:0": x})
            after = session.run(variables)
    pairs = zip(variables, before, after)
    return sorted(v.op.name for v, old, new in pairs if not np.array_equal(old, new))


def variables_of(meta):
    with tf.Graph().as_default():
        tf.train.import_meta_graph(meta)
        return {variable.op.name for variable in tf.global_variables()}


@each
@both
@pytest.mark.long
def test_the_warnings_name_what_a_batch_changes_before_its_global_step(kind, resource):
    build, names = LEFTOVERS[kind]
    exported = export(build, resource)
    meta, report = rewrite(exported, 4)
    assert report.at_once == names
    for name in names:
        assert any(name in sentence for sentence in report.warnings)
    assert changed(meta, variables_of(exported), 1) == names


@both
def test_an_average_that_is_corrected_for_its_start_cannot_be_shared(resource):
    exported = export(zero_debiased, resource)
    with pytest.raises(UsageError, match="corrected for its start at zero, .* zero_debias=False"):
        rewrite(exported, 4, shared_updates=[("^seen$", "mean")])
    said = [each for each in rewrite(exported, 4)[1].warnings if "seen" in each]
    assert len(said) == 1 and said[0].endswith("in a way that --share does not know")


@each
@pytest.mark.long
def test_with_strict_they_are_refusals(kind, tmp_path, capsys):
    build, names = LEFTOVERS[kind]
    source, out = tmp_path / "in.meta", tmp_path / "out.meta"
    source.write_bytes(export(build).SerializeToString())
    words = ["rewrite", str(source), str(out), "--batches-per-step", "4", "--ps", "1"]
    assert cli.main([*words, "--strict", "--json"]) == 3
    printed = capsys.readouterr()
    assert "--strict is given: no graph is written" in printed.err and names[0] in printed.err
    assert json.loads(printed.out)["at_once"] == names and not out.exists()
    meant = [word for name in names for word in ("--policy", "^{}$".format(name), "async")]
    if "inner" not in names:  # which is trained
        assert cli.main([*words, "--strict", *meant]) == 0
    assert cli.main([*words, "--overwrite"]) == 0


def plain(x):
    return batch_norm()(x)


@pytest.mark.long
@both
@pytest.mark.parametrize("move", [None, False])
@pytest.mark.few(1)
def test_statistics_that_nothing_moved_stay_still(move, resource):
    exported = export(plain, resource, moved=False)
    meta, report = rewrite(exported, 2, move_statistics=move)
    if move is None:
        (said,) = report.warnings
        assert said.startswith("no training moves the statistics of 1 BatchNorm (bn): they stay")
    else:
        assert report.warnings == []
        said = "the statistics of 1 BatchNorm, which no training moves, stay as they are (bn)"
        assert said in report.left
    moving = scoped("bn", "moving_mean moving_variance")
    assert changed(meta, moving, 2) == []


@both
@pytest.mark.few(1)
def test_they_move_once_where_that_is_asked_for_though_a_job_fetches_the_updates(resource):
    exported = export(plain, resource, moved=False)
    updates = list(exported.collection_def[tf.GraphKeys.UPDATE_OPS].node_list.value)
    meta, report = rewrite(exported, 2, move_statistics=True)
    assert report.warnings == []
    moving = scoped("bn", "moving_mean moving_variance")
    assert changed(meta, moving, 1, fetch=updates) == []
    assert changed(meta, moving, 2, fetch=updates) == moving


def two_adams(x):
    """A second optimizer of the same variables, for another loss, which the job runs in turn."""
    with tf.variable_scope("", reuse=True):
        kernel = tf.get_variable("kernel", [WIDTH, 1])
    loss = tf.reduce_mean(tf.square(tf.matmul(x, kernel) + 1.0))
    tf.train.AdamOptimizer(0.1, name="Second").minimize(loss, name="second")
    return x


@pytest.mark.few(1)
@both
def test_several_train_ops_of_the_same_variables_are_warned_of(resource):
    exported = export(two_adams, resource)
    with pytest.raises(BadInput, match="name one of second, train"):
        rewrite(exported, 4)
    (said,) = rewrite(exported, 4, train_op="train")[1].warnings
    assert said.startswith("another train op trains kernel, too: each worker applies it at once")
    _, report = rewrite(exported, 4, train_op=["train", "second"])
    assert "train and second train together, each of them all 1 variables" in report.warnings[0]
    assert report.warnings[1].startswith("several of these ops train kernel: every global step")
    assert "1 dense variables, trained by" in str(report)
