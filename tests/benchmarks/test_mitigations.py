"""The training with late gradients on flat vectors is that of TensorFlow."""

import numpy as np
import pytest

from benchmarks.auc_evidence_parts import alone, plan
from benchmarks.auc_evidence_parts.data import Answers
from benchmarks.harness import kept
from benchmarks.mitigations_parts import data, methods, report, runs, search, training
from benchmarks.mitigations_parts.model import ROW, scores
from semisync.common.compat import tf

SIZES, BAG, ROWS, M, RATE = (7, 50, 3), 90, 2560, 2, 0.01
TRAIN, HELD_OUT = slice(0, 2048), slice(2048, ROWS)


def log():
    """Random answers, some of whose bags have empty places."""
    random = np.random.RandomState(0)
    fields = np.stack([random.randint(0, size, ROWS) for size in SIZES], 1)
    bags = random.randint(0, BAG, (ROWS, 4)) * random.randint(0, 2, (ROWS, 4))
    labels = (random.rand(ROWS) < 0.3 + 0.4 * (fields[:, 0] > 3)).astype(np.int8)
    about = {"fields": dict(zip("abc", SIZES)), "bag": BAG}
    return Answers(fields.astype(np.int16), bags.astype(np.int16), labels, None, about)


def of_tensorflow(answers, optimizer, delay):
    """(initial values by name, scores of the held-out rows)."""
    settings = plan.CHOSEN._replace(batches_per_step=M, optimizer=optimizer)
    run = {"seed": 1, "learning_rate": RATE, "delay": delay}
    with tf.Graph().as_default():
        job = alone.Alone(run, settings, answers, TRAIN, HELD_OUT)
        initialise = tf.global_variables_initializer()
        with tf.Session() as session:
            session.run(initialise)
            initial = session.run({v.op.name: v for v in tf.trainable_variables()})
        with tf.Session() as session:  # a new one: it draws the same initial values
            return initial, job.scores(session)


def on_vectors(answers, optimizer, delay, initial):
    """The scores of the held-out rows after the same training."""
    rows = data._in_one_table(
        answers.fields, SIZES, answers.bags, BAG, answers.labels, {"test": (TRAIN, HELD_OUT)}
    )
    method = methods.Method(late=None)
    job = training.Training(rows, "assist", "test", optimizer, M, method, RATE, seed=1)
    parts = [initial["fields"], initial["bag"]]
    parts += [initial["tower%d_%s" % (n, of)] for n in range(3) for of in ("kernel", "bias")]
    job._weights[:] = np.concatenate([part.reshape(-1) for part in parts])
    job._versions[:] = job._weights
    job._staleness[:] = delay
    job.run()
    logits = scores(job._shape, rows, HELD_OUT, job._weights)
    return 1 / (1 + np.exp(-logits))


@pytest.mark.parametrize("optimizer", ["adam", "adagrad"])
@pytest.mark.few(1)
def test_late_gradients_on_vectors_train_as_in_tensorflow(optimizer):
    answers = log()
    initial, exact = of_tensorflow(answers, optimizer, 0)
    _, expected = of_tensorflow(answers, optimizer, 1)
    assert sum(value.size for value in initial.values()) > ROW * (sum(SIZES) + BAG)
    np.testing.assert_allclose(on_vectors(answers, optimizer, 1, initial), expected, atol=2e-3)
    assert np.abs(exact - expected).max() > 0.02


@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered")
def test_settings_that_diverge_lose_the_search_and_are_reported(tmp_path):
    answers, splits = log(), {"validation": (slice(0, 768), slice(768, 1024))}
    rows = data._in_one_table(answers.fields, SIZES, answers.bags, BAG, answers.labels, splits)
    path = str(tmp_path / "runs.jsonl")
    wild = methods.Mode("wild", methods.Method(), ("curvature", [1e9, 0.01]))
    _, strength = search.settings(runs.Runs(path, "sparrow", rows, "adagrad", 8), wild, 4)
    assert strength == 0.01
    lines = list(kept.lines(path))
    assert [line["auc"] is None for line in lines] == [True] * 6 + [False] * 2
    assert "| wild | 4, 3 diverged | " in report.markdown(lines)
    lost = [dict(line, split="test") for line in lines[:1]]
    assert "1, 1 diverged | | | | | |" in report.markdown(lost)
