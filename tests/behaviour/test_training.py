"""`semisync verify --steps`: torch takes TensorFlow's training steps, or the first that differs."""

import pyarrow as pa
import pyarrow.parquet
import pytest
import tensorflow.compat.v1 as tf

from semisync import cli
from tests.model.training.graphs import X, Y, regression, saved


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("which", "name", "kinds"),
    [
        ("zoo", "wide_and_deep", {"loss", "gradient", "parameter", "slot", "statistic", "counter"}),
        (
            "zoo",
            "youtube_dnn",
            {"loss", "gradient", "parameter", "slot", "counter"},
        ),  # draws classes
        (
            "zoo_tf2",
            "mmoe",
            {"loss", "gradient", "parameter", "slot", "statistic", "counter", "dropout"},
        ),
    ],
)
def test_torch_takes_tensorflows_steps(converted, which, name, kinds, capsys):
    model = converted(which, name)
    code, found = model.steps(capsys, 8)
    assert (code, found["equal"], found["exceeded"]) == (0, True, None)
    assert found["steps"] == 8
    assert {one["kind"] for one in found["largest"]} == kinds
    assert max(one["relative"] for one in found["largest"]) <= 1e-5
    compared = found["compared"]["parameter"] + len(found["neutral"])
    assert compared == len(model.model.said["trainable"])
    assert set(found["neutral"]) <= {"deep/dense/bias", "deep/dense_1/bias"}


def test_a_wrong_weight_is_seen_in_the_first_step(wide_and_deep, capsys):
    restore = wide_and_deep.change("deep/items", by=0.25)
    try:
        code, found = wide_and_deep.steps(capsys, 2)
    finally:
        restore()
    assert (code, found["equal"]) == (1, False)
    assert found["exceeded"]["step"] == 1


def test_a_wrong_slot_is_named(wide_and_deep, capsys):
    restore = wide_and_deep.change("deep/dense/kernel/Adagrad", by=0.25)
    try:
        code, found = wide_and_deep.steps(capsys, 1)
    finally:
        restore()
    assert code == 1
    assert found["exceeded"]["name"] in ("deep/dense/kernel", "deep/dense/kernel/Adagrad")


@pytest.mark.long
def test_what_tensorflow_draws_for_dropout_is_given_to_both(wide_and_deep, capsys):
    code, found = wide_and_deep.steps(capsys, 3, "--feed", "keep_prob=0.5")
    # A BatchNorm over ten rows, half of them 0, magnifies the rounding of the processor's kernels,
    # at times beyond 1e-5; other draws would differ by far more.
    assert (code, found["steps"]) == (int(not found["equal"]), 3)
    assert max(one["relative"] for one in found["largest"]) <= 1e-4


@pytest.mark.long
def test_a_flag_may_say_that_the_model_does_not_train(wide_and_deep, capsys):
    code, found = wide_and_deep.steps(capsys, 3, "--feed", "training=false")
    assert (code, found["equal"]) == (0, True)
    (statistic,) = [one for one in found["largest"] if one["kind"] == "statistic"]
    assert statistic["relative"] == 0  # nothing moves them


@pytest.mark.again
def test_dropout_that_cannot_be_fed_is_refused_by_name(converted, capsys):
    model = converted("zoo_tf2", "wide_and_deep_functional")
    more = ["--steps", "3", "--data", model.training_rows, "--batch-size", "10"]
    code, error = model.verify(capsys, *more, "--feed", "keep_prob=0.5")
    assert code == 3
    assert "as the graph draws at random in '" in error
    assert "--feed keep_prob=1.0" in error


def test_what_a_draw_depends_on_and_the_loss_does_not_is_asked_for(tmp_path, capsys):
    """As noise of a shape that is fed, which the model is given instead of the shape."""

    def build():
        loss, weight = regression()
        noise = tf.random_uniform(tf.placeholder(tf.int32, [1], name="how_many"))
        loss += tf.reduce_mean(noise) * tf.reduce_sum(weight)
        return tf.train.GradientDescentOptimizer(0.1).minimize(loss)

    prefix = saved(tmp_path, build, {"how_many:0": [3]})
    out, data = str(tmp_path / "out"), str(tmp_path / "data.parquet")
    assert cli.main(["convert", prefix, out, "--model", "--output", "strided_slice:0"]) == 0
    pa.parquet.write_table(pa.table({"x": X.tolist(), "y": Y.tolist()}), data)
    capsys.readouterr()
    assert cli.main(["verify", prefix, out, "--steps", "1", "--data", data]) == 3
    error = capsys.readouterr().err
    assert "depends on the placeholder 'how_many' (int32)" in error
    assert "--feed how_many=VALUE" in error


@pytest.mark.long
@pytest.mark.parametrize("rows", [2, 3])  # in parts of one size, and of two
def test_each_part_of_a_variable_is_compared_with_its_own_values(tmp_path, capsys, rows):
    def build():
        parts = tf.get_variable("weight", [rows, 1], partitioner=tf.fixed_size_partitioner(2))
        loss, _ = regression(tf.concat(list(parts), 0)[:2])
        return tf.train.AdagradOptimizer(0.1).minimize(loss)

    assert verified(tmp_path, capsys, saved(tmp_path, build), "strided_slice_1:0") == (0, "equal")


@pytest.mark.long
def test_a_rate_that_may_be_read_before_or_after_the_global_step_moves_is_read_before(
    tmp_path, capsys
):
    """As in BERT's job. Here it comes after the gradient, so that the step has moved by then."""

    def build():
        loss, weight = regression()
        (gradient,) = tf.gradients(loss, weight)
        step = tf.train.get_or_create_global_step()
        with tf.control_dependencies([gradient]):
            rate = 0.1 / (1.0 + tf.to_float(tf.identity(step)))
        trained = tf.train.GradientDescentOptimizer(rate).apply_gradients([(gradient, weight)])
        return tf.group(trained, step.assign(step + 1))

    prefix = saved(tmp_path, build)
    assert verified(tmp_path, capsys, prefix, "strided_slice:0") == (0, "equal")


def verified(folder, capsys, prefix, output):
    """The code of `verify --steps 3` of a graph of `saved`, and the first word of its last line."""
    out, data = str(folder / "out"), str(folder / "data.parquet")
    assert cli.main(["convert", prefix, out, "--model", "--output", output]) == 0
    pa.parquet.write_table(pa.table({"x": X.tolist(), "y": Y.tolist()}), data)
    capsys.readouterr()
    code = cli.main(["verify", prefix, out, "--steps", "3", "--data", data])
    return code, capsys.readouterr().out.splitlines()[-1].split(":")[0]
