"""The .meta file that an Estimator has left, rewritten by the command: its own Wide & Deep.

The graph has its input in itself. The reference is the same Estimator, from the same checkpoint, on
batches M times as large.
"""

import json
import shutil

import numpy as np
import pytest

import semisync
from semisync import cli
from semisync.common.compat import tf
from tests.support.require import skip_without
from tests.wrap.one_process import PATIENCE, assert_close

M, STEPS, SIZE = 3, 4, 6


def estimator(directory):
    words = tf.feature_column.categorical_column_with_hash_bucket("word", 7)
    crossed = tf.feature_column.crossed_column(["word", "place"], 11)
    return tf.estimator.DNNLinearCombinedClassifier(
        model_dir=str(directory),
        linear_feature_columns=[words, crossed],
        linear_optimizer=tf.train.FtrlOptimizer(0.1),
        dnn_feature_columns=[
            tf.feature_column.embedding_column(words, 3),
            tf.feature_column.numeric_column("number"),
        ],
        dnn_hidden_units=[5],
        dnn_optimizer=tf.train.AdagradOptimizer(0.1),
        loss_reduction=tf.losses.Reduction.SUM_OVER_BATCH_SIZE,
    )


def input_fn(size):
    """The same examples in batches of a size."""
    random = np.random.RandomState(0)
    count = M * STEPS * SIZE
    features = {
        "word": random.choice(["a", "b", "c"], count),
        "place": random.choice(["x", "y"], count),
        "number": random.randn(count).astype(np.float32),
    }
    labels = random.randint(0, 2, count)
    return lambda: tf.data.Dataset.from_tensor_slices((features, labels)).batch(size)


def last_checkpoint(directory):
    reader = tf.train.NewCheckpointReader(tf.train.latest_checkpoint(str(directory)))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


class Begin(tf.train.SessionRunHook):
    """Begins with the data, as the Estimator has a hook of its own do: no collection names it."""

    def begin(self):
        operations = tf.get_default_graph().get_operations()
        self._begin = [op for op in operations if op.type == "MakeIterator"]

    def after_create_session(self, session, coord):
        session.run(self._begin)


def copy_first_checkpoint(old, new):
    new.mkdir()
    for path in old.glob("model.ckpt-0.*"):
        shutil.copy(str(path), str(new))
    (new / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-0"\n')


@pytest.mark.long
def test_an_estimators_graph_trains_what_the_estimator_trains_on_the_union(tmp_path, capsys):
    if not hasattr(tf, "estimator"):
        skip_without("estimator", "TensorFlow 2.x has no Estimator any more")
    estimator(tmp_path / "job").train(input_fn(SIZE), steps=1)
    for name in ("reference", "rewritten"):
        copy_first_checkpoint(tmp_path / "job", tmp_path / name)

    estimator(tmp_path / "reference").train(input_fn(M * SIZE))

    paths = [str(tmp_path / name) for name in ("job/model.ckpt-0.meta", "out.meta")]
    options = ["--batches-per-step", str(M), "--paced", "--json"]
    capsys.readouterr()
    assert cli.main(["rewrite"] + paths + options) == 0
    report = json.loads(capsys.readouterr().out)
    ops = {each["by"][0] for each in report["trained"]}
    assert {"ResourceSparseApplyFtrl", "ResourceSparseApplyAdagrad"} <= ops
    with tf.Graph().as_default():
        tf.train.import_meta_graph(paths[1])
        hook = semisync.restore_hook(True, patience=PATIENCE)
        with tf.train.MonitoredTrainingSession(
            hooks=[Begin(), hook], checkpoint_dir=str(tmp_path / "rewritten")
        ) as session:
            for _ in range(M * STEPS):
                session.run(report["stand_ins"][-1])
    assert hook.ledger.fates["admitted"] == M * STEPS
    expected = last_checkpoint(tmp_path / "reference")
    assert expected["global_step"] == STEPS
    assert_close(last_checkpoint(tmp_path / "rewritten"), expected)
