"""`semisync verify --forward`: the same scores, or the first node that differs."""

import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from migrate.behaviour.forward import compare_forward
from migrate.behaviour.setting import Setting
from migrate.behaviour.text import forward_lines
from semisync import cli

DROPS = "dropout was off on both sides: the graph drops values at random whenever it runs, in"


@pytest.mark.parametrize(
    ("which", "name", "notes"),
    [
        ("zoo", "wide_and_deep", []),  # text, a fed phase
        # an iterator's features, sparse ones, built for training
        ("zoo", "canned_wide_and_deep", ["BatchNorm took its moving statistics", DROPS]),
        ("zoo", "gru", []),  # a loop
        ("zoo", "conv", ["BatchNorm took its moving statistics", DROPS]),  # images
        ("zoo_tf2", "conv", ["BatchNorm took its moving statistics", DROPS]),
        ("zoo_tf2", "mmoe", ["dropout was off on both sides"]),
        ("zoo_tf2", "wide_and_deep_functional", []),  # a tf.cond of two functions
    ],
)
@pytest.mark.few(1)
def test_a_converted_model_scores_as_tensorflow_does(converted, which, name, notes, capsys):
    code, found = converted(which, name).forward(capsys)
    assert (code, found["equal"], found["first"], found["rows"]) == (0, True, None, 48)
    assert {output["leg"] for output in found["outputs"]} == {"torch"}
    assert len(found["outputs"]) == len(converted(which, name).model.said["outputs"])
    # of sums whose order a processor decides: 2.9e-6 for the images on an EPYC with oneDNN
    assert max(output["absolute"] for output in found["outputs"]) <= 4e-6
    assert len(found["notes"]) == len(notes)
    assert all(words in note for words, note in zip(notes, found["notes"]))


def test_a_wrong_weight_is_found_and_the_first_node_that_reads_it_is_named(wide_and_deep, capsys):
    restore = wide_and_deep.change("deep/dense_1/kernel", by=0.5)
    try:
        code, found = wide_and_deep.forward(capsys)
    finally:
        restore()
    assert (code, found["equal"]) == (1, False)
    assert all(output["beyond"] > 0 for output in found["outputs"])
    first = found["first"]
    assert (first["node"], first["op"]) == ("deep/dense_1/BiasAdd:0", "BiasAdd")
    assert first["variables"] == ["deep/dense_1/bias", "deep/dense_1/kernel"]
    assert first["changed"] == ["deep/dense_1/kernel"]
    difference = first["at"]["other"] - first["at"]["tensorflow"]
    assert abs(difference) > 1e-3
    assert first["at"]["row"] > 0


def test_a_changed_line_is_found_and_shown(wide_and_deep):
    path = wide_and_deep.out / "model.py"
    source = path.read_text()
    path.write_text(
        source.replace('torch.log(given["age"] + 1.0)', 'torch.log(given["age"] + 1.1)')
    )
    try:
        setting = Setting(python=wide_and_deep.python, feeds={"keep_prob": 1.0})
        report = compare_forward(
            wide_and_deep.model.prefix,
            str(wide_and_deep.out),
            wide_and_deep.rows,
            setting,
            outputs="logits",
            onnx=False,
        )
    finally:
        path.write_text(source)
    assert not report.equal
    assert [output.output for output in report.outputs] == ["logits:0"]
    assert report.first.node == "deep/ExpandDims:0"
    number, line = report.first.line
    assert source.splitlines()[number - 1].strip() == line.replace("1.1", "1.0")
    text = "\n".join(forward_lines(report))
    assert f"line {number} of model.py, which is not what the conversion writes:" in text
    assert "logits:0, torch: 48 of 48 rows differ" in text
    assert text.splitlines()[-1].startswith("different: 48 rows")


def test_one_row_is_enough(wide_and_deep, capsys):
    code, found = wide_and_deep.forward(capsys, "--rows", "1")
    assert (code, found["rows"]) == (0, 1)


@pytest.mark.long
def test_a_data_set_without_a_column_is_refused(wide_and_deep, tmp_path, capsys):
    table = pyarrow.parquet.read_table(wide_and_deep.rows).drop_columns(["hour"])
    pyarrow.parquet.write_table(table, tmp_path / "rows.parquet")
    arguments = ["--forward", str(tmp_path / "rows.parquet"), "--feed", "keep_prob=1.0"]
    code, error = wide_and_deep.verify(capsys, *arguments)
    assert code == 3
    assert "has no column 'hour'" in error
    assert "--input COLUMN=hour names another column" in error
    renamed = table.append_column("at", pa.array([7] * 48))
    pyarrow.parquet.write_table(renamed, tmp_path / "rows.parquet")
    code, found = wide_and_deep.verify(capsys, *arguments, "--input", "at=hour", "--no-onnx")
    assert (code, found["equal"]) == (0, True)


@pytest.mark.long
def test_a_rate_that_is_not_fed_is_asked_for_and_one_that_drops_is_refused(wide_and_deep, capsys):
    code, error = wide_and_deep.verify(capsys, "--forward", wide_and_deep.rows)
    assert code == 3
    assert "give it with --feed keep_prob=VALUE" in error
    arguments = ["--forward", wide_and_deep.rows, "--feed", "keep_prob=0.5"]
    code, error = wide_and_deep.verify(capsys, *arguments)
    assert code == 3
    assert "draws at random in 'deep/dropout/random_uniform/RandomUniform'" in error


def test_an_interpreter_without_tensorflow_is_named(wide_and_deep, tmp_path, monkeypatch, capsys):
    (tmp_path / "tensorflow").mkdir()
    (tmp_path / "tensorflow" / "__init__.py").write_text("raise ImportError('none here')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(wide_and_deep, "python", sys.executable)
    code, error = wide_and_deep.forward(capsys)
    assert code == 3
    assert "has no TensorFlow (none here); --tf-python names an interpreter that has it" in error


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--steps", "5"], "--steps takes its batches from --data"),
        (["--data", "rows"], "--data is for --steps"),
        (["--no-onnx"], "are for --forward"),
        (["--feed", "x=1"], "--batch-size are for --forward and --steps"),
        (["--forward", "rows", "--batch-size", "0"], "--batch-size is 1 or more"),
        (["--forward", "rows", "--rows", "0"], "the rows to compare are 1 or more, not 0"),
        (["--forward", "rows", "--output", "deep/Relu"], "gives no output 'deep/Relu' but log"),
        (["--forward", "rows", "--feed", "keep_prob=1", "--feed", "training=true"], "feed False"),
    ],
)
def test_a_call_without_meaning_is_a_sentence(wide_and_deep, arguments, sentence, capsys):
    code, error = wide_and_deep.verify(capsys, *arguments)
    assert code == 3
    assert sentence in error
    assert error.count("\n") == 1


def test_a_conversion_without_a_model_is_refused(wide_and_deep, capsys):
    path = wide_and_deep.out / "model.py"
    moved = path.rename(path.with_suffix(".away"))
    try:
        code, error = wide_and_deep.forward(capsys)
    finally:
        moved.rename(path)
    assert code == 3
    assert "has no model.py" in error


def write_norm(folder, fused):
    """Three rows of two numbers, and a BatchNorm as it trains, "model", and as it serves."""
    tf = pytest.importorskip("tensorflow").compat.v1

    def build(training):
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        scale = tf.placeholder_with_default(2.0, [], name="scale")
        moving = [tf.get_variable(name, [2], trainable=False) for name in ("mean", "variance")]
        if fused:
            image, ones = tf.reshape(x, [-1, 1, 1, 2]), tf.ones([2])
            offset = tf.get_variable("offset", [2])
            told = {} if training else dict(zip(("mean", "variance"), moving))
            y, *batch = tf.nn.fused_batch_norm(image, ones, offset, **told, is_training=training)
            y = tf.reshape(y, [-1, 2])
        else:
            batch = tf.nn.moments(x, [0])
            y = tf.nn.batch_normalization(x, *(batch if training else moving), None, None, 1e-3)
        tf.multiply(tf.reduce_sum(y, 1), scale, name="scores")
        if training:
            pairs = zip(moving, batch)
            tf.group(*(tf.assign_sub(one, (one - new) * 0.1) for one, new in pairs))

    for name, training in (("model", True), ("evaluation", False)):
        with tf.Graph().as_default(), tf.Session() as session:
            build(training)
            session.run(tf.global_variables_initializer())
            for variable in tf.global_variables():
                session.run(variable.assign([1.0, 3.0]))
            tf.train.Saver().save(session, str(folder / name))
    table = pa.table({"x": [[1.0, 2.0], [3.0, 5.0], [-1.0, 0.5]]})
    pyarrow.parquet.write_table(table, folder / "rows.parquet")


@pytest.mark.long
@pytest.mark.parametrize("fused", [pytest.param(False, marks=pytest.mark.long), True])
def test_a_graph_that_was_built_for_training_is_compared_as_it_serves(tmp_path, capsys, fused):
    """As the evaluation's graph has it, which TensorFlow computes by other means."""
    write_norm(tmp_path, fused)
    model, out = str(tmp_path / "model"), str(tmp_path / "out")
    assert cli.main(["convert", model, out, "--model", "--output", "scores", "--no-tables"]) == 0
    arguments = ["verify", model, out, "--forward", str(tmp_path / "rows.parquet"), "--no-onnx"]
    for more, note in (([], True), (["--meta", str(tmp_path / "evaluation.meta")], False)):
        capsys.readouterr()
        assert cli.main([*arguments, *more]) == 0
        assert ("BatchNorm took its moving statistics" in capsys.readouterr().out) is note


@pytest.mark.long
def test_a_wrong_moving_statistic_is_found_in_a_graph_that_was_built_for_training(tmp_path, capsys):
    write_norm(tmp_path, fused=False)
    model, out = str(tmp_path / "model"), tmp_path / "out"
    arguments = ["convert", model, str(out), "--model", "--output", "scores", "--no-tables"]
    assert cli.main(arguments) == 0
    source = (out / "model.py").read_text()
    assert "runtime.BatchNorm(2, eps=0.001" in source
    (out / "model.py").write_text(source.replace("eps=0.001", "eps=0.01"))
    capsys.readouterr()
    rows = str(tmp_path / "rows.parquet")
    assert cli.main(["verify", model, str(out), "--forward", rows, "--no-onnx"]) == 1


@pytest.mark.parametrize("column", [0, pytest.param(63, marks=pytest.mark.long)])
def test_rounding_is_no_difference_and_a_wrong_weight_is_one(tmp_path, capsys, column):
    """Sums of large terms that cancel differ by more than 1e-5 of themselves, in TensorFlow too."""
    tf = pytest.importorskip("tensorflow").compat.v1
    random = np.random.RandomState(0)
    rows = (4000 * random.rand(256, 64)).astype("f")
    first = random.randn(64, 32).astype("f")
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 64], name="x")
        hidden = tf.matmul(x, tf.get_variable("first", initializer=first))
        weights = tf.get_variable("second", initializer=np.sin(np.arange(32.0, dtype="f"))[:, None])
        tf.identity(tf.matmul(hidden, weights), name="scores")
        session.run(tf.global_variables_initializer())
        prefix = tf.train.Saver().save(session, str(tmp_path / "model"))
    pyarrow.parquet.write_table(pa.table({"x": list(rows)}), tmp_path / "rows.parquet")
    out = tmp_path / "out"
    assert cli.main(["convert", prefix, str(out), "--model", "--output", "scores"]) == 0
    arguments = ["verify", prefix, str(out), "--forward", str(tmp_path / "rows.parquet")]
    assert cli.main([*arguments, "--no-onnx"]) == 0
    data = out / "__0_0.distcp"
    wrong = first.copy()
    wrong[column, 1] *= 1.001
    assert data.read_bytes().count(first.tobytes()) == 1
    data.write_bytes(data.read_bytes().replace(first.tobytes(), wrong.tobytes()))
    capsys.readouterr()
    assert cli.main([*arguments, "--no-onnx"]) == 1
