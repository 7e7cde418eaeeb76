"""What `semisync convert --model` cannot write ends with exit code 3 and one sentence."""

import pytest

from semisync import cli

tf = pytest.importorskip("tensorflow").compat.v1


def python_function(x):
    tf.identity(tf.py_func(lambda value: value * 2, [x], tf.float32), name="score")


def custom_op(x):
    tf.linalg.cholesky(x, name="score")  # renamed below to an op that no TensorFlow has


def strange_control_flow(x):
    dead, alive = tf.raw_ops.Switch(data=x, pred=tf.reduce_sum(x) > 0)
    merged, _ = tf.raw_ops.Merge(inputs=[dead * 2.0, dead * 3.0])
    tf.add(merged, 1.0, name="score")


def unending_loop(x):
    """A Merge that goes round without a condition."""
    with tf.Graph().as_default():
        pass
    enter = tf.raw_ops.Enter(data=x, frame_name="odd")
    merged, _ = tf.raw_ops.Merge(inputs=[enter, enter])
    back = tf.raw_ops.NextIteration(data=merged * 2.0)
    merged.op._update_input(1, back)
    tf.raw_ops.Exit(data=back, name="score")


def several_ends(x):
    tf.nn.relu(x, name="one/end")
    tf.nn.tanh(x, name="other/end")


def no_end(x):
    tf.reduce_sum(x)


CASES = {
    python_function: "PyFunc, Python code that is not in the graph, of node 'PyFunc'",
    custom_op: "unknown ops: ZeroOut of node 'score' (of 'MatMul' (MatMul))",
    strange_control_flow: "is control flow that neither tf.cond nor tf.while_loop writes",
    unending_loop: "is control flow that neither tf.cond nor tf.while_loop writes",
    several_ends: "cannot be told; name them with --output, such as one/end:0, other/end:0",
    no_end: "name them with --output: the graph has no loss with labels and no end that is a score",
}


@pytest.mark.parametrize("build", CASES, ids=lambda build: build.__name__)
def test_it_is_refused_in_one_sentence(build, tmp_path, capsys):
    from tests.support.control_flow import control_flow

    prefix = str(tmp_path / "model")
    with control_flow(1), tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 3], name="x")
        build(tf.matmul(x, tf.get_variable("w", [3, 3])))
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, prefix, write_meta_graph=False)
        meta = tf.train.export_meta_graph()
    for node in meta.graph_def.node:
        node.op = "ZeroOut" if node.op == "Cholesky" else node.op
    (tmp_path / "model.meta").write_bytes(meta.SerializeToString())
    named = ["--output", "score"] if "score" in {node.name for node in meta.graph_def.node} else []
    out = tmp_path / "out"
    arguments = ["convert", prefix, str(out), "--no-tables", "--model"]
    assert cli.main([*arguments, *named]) == 3
    error = capsys.readouterr().err
    assert CASES[build] in error and error.count("\n") == 1
    assert not out.exists()
