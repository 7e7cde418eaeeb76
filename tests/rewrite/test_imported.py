"""A MetaGraph as the tf.Graph on which a rewrite builds."""

import pytest

import graph_rewrite
from graph_rewrite.graph.meta_graph import imported
from semisync.common.compat import tf
from semisync.common.errors import BadInput
from tests.rewrite.exported import export
from tests.wrap.one_process import M


def adam(model, wrap):
    return tf.train.AdamOptimizer().minimize(model.loss(), global_step=model.step)


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
def test_variables_are_read_and_assigned(resource):
    with imported(export(adam, resource).meta).as_default():
        variables = {variable.op.name: variable for variable in tf.global_variables()}
        assert {"kernel", "global_step"} <= set(variables)
        kernel, step = variables["kernel"], tf.train.get_global_step()
        assigned = [tf.assign(kernel, tf.fill(kernel.shape, 2.0)), tf.assign(step, 7)]
        with tf.Session() as session:
            session.run([tensor.op for tensor in assigned])
            assert session.run(kernel).tolist() == [[2.0]] * 12
            assert session.run(step) == 7


def test_a_global_step_of_an_old_collection_is_found_as_tensorflow_finds_it():
    with tf.Graph().as_default():
        tf.Variable(0, name="global_step", use_resource=False)
        meta = tf.train.export_meta_graph()
    meta.collection_def[tf.GraphKeys.GLOBAL_STEP].node_list.value.append("global_step:0")
    assert tf.train.get_global_step(imported(meta)).op.name == "global_step"


def test_the_library_and_no_saver_adds_ops_and_summaries():
    with tf.Graph().as_default():
        tf.summary.scalar("seen", tf.get_variable("v", []))
        meta = tf.train.export_meta_graph()
    graph = imported(meta)
    assert [op.name for op in graph.get_operations()] == [node.name for node in meta.graph_def.node]
    assert graph.get_collection(tf.GraphKeys.SUMMARIES) == []


def test_a_graph_that_tensorflow_cannot_import_is_refused_in_one_sentence():
    meta = export(adam).meta
    node = next(node for node in meta.graph_def.node if node.op == "MatMul")
    node.attr["T"].type = tf.float64.as_datatype_enum
    with pytest.raises(BadInput, match="cannot import .* with the job's own TensorFlow") as error:
        graph_rewrite.semi_synchronize(meta, M)
    assert node.name in str(error.value)
