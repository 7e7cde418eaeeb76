"""The graph of a job whose optimizer semisync wraps trains on as the plain job does."""

import pathlib
import sys

import numpy as np
import pytest

import semisync
from migrate.behaviour.in_tensorflow import TensorFlowGraph
from migrate.behaviour.setting import Setting
from migrate.graph.interface import find_interface
from migrate.graph.metagraph import read_graph
from migrate.model.training.recipe import read_recipe
from migrate.model.training.steps import compare_steps
from migrate.open import open_checkpoint
from semisync.common.compat import tf
from semisync.common.errors import BadInput
from semisync.common.plain_step import COLLECTION
from semisync.common.tensor_names import of_edge
from tests.model.training.graphs import regression
from tests.support.require import forked_tensorflow, tf1_python
from tests.support.written import semisync_sources, written

# The MetaGraph as `semisync rewrite` makes it of the plain job's, otherwise of a wrapped job.
REWRITTEN = ["rewritten_adam_ref", "rewritten_momentum"]
# Rows of tables and whole variables, references and resources, clipping, rates fed and scheduled.
TF1 = ["adagrad", "adam_ref", "fed", "lazy_adam", "momentum", "nesterov", "sgd"]
TF2 = ["adam", "nesterov"]


@pytest.fixture(scope="module")
def metas():
    """Function (version, name) -> path of the MetaGraph of a wrapped job."""
    writer = pathlib.Path(__file__).with_name("write_wrapped.py")

    def path(version, name):
        python, names = (
            (tf1_python(), TF1 + REWRITTEN) if version == "tf1" else (sys.executable, TF2)
        )
        folder = written(python, writer, semisync_sources(), *names, beside=["write_steps.py"])
        return str(folder / f"{name}.meta")

    return path


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("version", "name"),
    [*(("tf1", name) for name in TF1 + REWRITTEN), *(("tf2", name) for name in TF2)],
)
def test_torch_takes_the_plain_jobs_steps(version, name, metas, request):
    job = request.getfixturevalue(f"jobs_{version}")[name.replace("rewritten_", "")]
    report = compare_steps(job.training(metas(version, name)), job.steps[:5])
    assert report.exceeded is None
    assert (report.steps, report.neutral, report.compared["parameter"]) == (5, {}, 8)
    assert set(report.largest) >= {"loss", "parameter", "statistic", "counter"}


@pytest.mark.parametrize("name", ["fed", "rewritten_adam_ref"])
def test_what_enters_the_wrapper_is_no_input_of_the_job(name, metas, jobs_tf1):
    plain = jobs_tf1[name.replace("rewritten_", "")].prefix + ".meta"
    wanted, found = (
        [(feed.name, feed.kind, feed.shape) for feed in find_interface(read_graph(meta)).feeds]
        for meta in (plain, metas("tf1", name))
    )
    assert found == wanted


@pytest.mark.long
@pytest.mark.parametrize(
    ("version", "name"), [("tf1", "adam_ref"), ("tf1", "fed"), ("tf1", "nesterov"), ("tf2", "adam")]
)
def test_tensorflow_takes_the_plain_jobs_step(version, name, metas, request):
    job = request.getfixturevalue(f"jobs_{version}")[name]
    meta = metas(version, name)
    graph = read_graph(meta)
    recipe = read_recipe(graph)
    writers = {node.name for nodes in recipe.changes.written.values() for node in nodes}
    with np.load(pathlib.Path(job.prefix).with_name("steps.npz")) as file:
        fed = {key[2:] + ":0": file[key].tolist() for key in file if key.startswith("0/")}
    partitions = [f"model/tags/part_{k}" for k in range(3)]
    nodes = {key: partitions if key == "model/tags" else [key] for key in job.steps[0].finish()[0]}
    slots = {
        key: [part + key[len("model/tags") :] for part in partitions]
        for key in nodes
        if key.startswith("model/tags/")
    }
    told = {
        "loss": of_edge(recipe.loss(graph)),
        "ops": sorted(writers),
        "drawn": [],
        "watched": [],
        "rates": [],
        "gradients": {},
        "variables": {**nodes, **slots},
        "tables": {},
        "moved": [],
        "begun": [],
    }
    python = forked_tensorflow(tf1_python() if version == "tf1" else sys.executable)
    with open_checkpoint(job.prefix) as checkpoint:
        tensorflow = TensorFlowGraph(Setting(python=python), checkpoint, graph, [], fed, steps=told)
        try:
            begun, after = tensorflow.begin(1, [], twice=False), tensorflow.finish()[0]
        finally:
            tensorflow.close()
    assert begun.loss == pytest.approx(job.steps[0].loss, rel=1e-6)
    for key, value in job.steps[0].finish()[0].items():
        np.testing.assert_allclose(after[key], value, 1e-5, 1e-7, err_msg=key)


def two_optimizers(path, wrap, begin=True):
    """The MetaGraph of a job that counts its steps itself, by hand or once a session may begin."""
    with tf.Graph().as_default():
        loss, weight = regression()
        bias = tf.get_variable("bias", [1], initializer=tf.ones_initializer())
        loss += tf.reduce_sum(tf.square(bias))
        step = tf.train.get_or_create_global_step()
        pair = [wrap(tf.train.AdagradOptimizer(0.5)), wrap(tf.train.FtrlOptimizer(0.2))]
        trained = [
            optimizer.minimize(loss, var_list=[variable])
            for optimizer, variable in zip(pair, [weight, bias])
        ]
        with tf.control_dependencies(trained):
            tf.assign_add(step, 1, name="count")
        for optimizer in pair if begin else []:
            optimizer.make_session_run_hook(True).begin()
        tf.train.export_meta_graph(str(path))
    graph = read_graph(str(path))
    recipe = read_recipe(graph)
    counted = {name: one.edge[0] for name, one in recipe.changes.counters.items()}
    values = {name: list(graph.nodes[node].attrs.values()) for name, node in counted.items()}
    written = {
        name: [node.op for node in writers] for name, writers in recipe.changes.written.items()
    }
    return written, values, {name: one.hyperparameters for name, one in recipe.updates.items()}


@pytest.mark.long
@pytest.mark.parametrize("begin", [False, True])
def test_a_job_that_counts_by_itself_changes_what_the_plain_job_does(begin, tmp_path):
    plain = two_optimizers(tmp_path / "plain.meta", lambda optimizer: optimizer, begin=False)
    wrapped = two_optimizers(
        tmp_path / "wrapped.meta",
        lambda optimizer: semisync.GlobalBatchOptimizer(optimizer, 4),
        begin,
    )
    assert wrapped == plain


def test_what_shares_the_fate_of_a_batch_is_part_of_its_step(tmp_path):
    with tf.Graph().as_default():
        loss, _ = regression()
        seen = tf.get_variable("seen", [], trainable=False, initializer=tf.zeros_initializer())
        optimizer = semisync.GlobalBatchOptimizer(tf.train.GradientDescentOptimizer(0.1), 4)
        optimizer.aggregate(
            [loss], seen.device, lambda weights, losses: tf.assign(seen, losses[0][-1]).op
        )
        optimizer.minimize(loss, tf.train.get_or_create_global_step())
        tf.train.export_meta_graph(str(tmp_path / "graph.meta"))
    graph = read_graph(str(tmp_path / "graph.meta"))
    (write,) = read_recipe(graph).changes.written["seen"]
    pending, above = [write.name], set()
    while pending:
        name = pending.pop()
        if name not in above:
            above.add(name)
            pending += [source for source, _ in graph.nodes[name].inputs]
    assert "loss" in above
    assert not {graph.nodes[name].op for name in above} & {"OrderedMapUnstage", "ConcatV2"}


def changed(meta, path, change):
    """A copy of a MetaGraph after `change`, a function of it."""
    found = tf.MetaGraphDef.FromString(pathlib.Path(meta).read_bytes())
    change(found)
    path.write_bytes(found.SerializeToString())
    return str(path)


def test_a_graph_that_does_not_tell_is_refused_with_what_to_do(metas, jobs_tf1, tmp_path):
    def forget(meta):
        del meta.collection_def[COLLECTION]

    meta = changed(metas("tf1", "adam_ref"), tmp_path / "old.meta", forget)
    with pytest.raises(BadInput, match="does not tell the step of one batch.*--meta"):
        jobs_tf1["adam_ref"].training(meta)


def test_a_damaged_note_is_bad_input(metas, tmp_path):
    def damage(meta):
        meta.collection_def[COLLECTION].bytes_list.value[:] = [b'{"format": 1']

    meta = changed(metas("tf1", "adam_ref"), tmp_path / "damaged.meta", damage)
    with pytest.raises(BadInput, match="damaged.meta: an entry of the collection .* is damaged"):
        read_graph(meta)


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
def test_what_the_chief_does_behind_the_step_is_the_plain_jobs(resource, tmp_path):
    def changes(wrap):
        with tf.Graph().as_default():
            initial = np.ones((3, 1), np.float32)
            weight = tf.get_variable("weight", initializer=initial, use_resource=resource)
            loss = tf.reduce_mean(tf.square(tf.placeholder(tf.float32, [None, 3]) @ weight))
            optimizer = wrap(tf.train.AdagradOptimizer(0.1))
            step = tf.train.get_or_create_global_step()
            with tf.control_dependencies([optimizer.minimize(loss, step)]):
                averaged = tf.train.ExponentialMovingAverage(0.9).apply([weight])
            with tf.control_dependencies([averaged]):
                tf.no_op(name="end")
            if isinstance(optimizer, semisync.GlobalBatchOptimizer):
                optimizer.make_session_run_hook(True).begin()
            path = str(tmp_path / (type(optimizer).__name__ + ".meta"))
            tf.train.Saver().export_meta_graph(path)
        written = read_recipe(read_graph(path), "end").changes.written
        return {variable: [node.name for node in nodes] for variable, nodes in written.items()}

    plain = changes(lambda optimizer: optimizer)
    assert "weight/ExponentialMovingAverage" in plain
    assert changes(lambda optimizer: semisync.GlobalBatchOptimizer(optimizer, 2)) == plain
