"""The excerpt of a graph gives what the whole graph gives, and is small."""

import pytest

from graph_rewrite.edit.excerpt import SHAPES, Wanted, excerpt, wait_for
from graph_rewrite.graph.index import Nodes
from graph_rewrite.graph.op_traits import OpKinds
from semisync.common.compat import tf
from tests.tf1.rewrite.exported import export


@pytest.fixture(scope="module", params=[False, True], ids=["ref", "resource"])
def meta(request):
    """The MetaGraphDef of a job with Adam: IndexedSlices, a condition, shapes known in part."""

    def build(model, wrap):
        loss = tf.cond(tf.greater(model.step, 3), lambda: model.loss(), lambda: 2 * model.loss())
        return tf.train.AdamOptimizer().minimize(loss, global_step=model.step)

    return export(build, request.param, device="/job:worker/task:0").meta


def excerpt_of(meta, tensors=(), ops=(), variables=()):
    nodes = Nodes.of(meta)
    kinds = OpKinds(nodes, meta.graph_def.library)
    return excerpt(meta, nodes, kinds, [Wanted(list(tensors), list(ops), list(variables))])


def copy_of(meta):
    copy = tf.MetaGraphDef()
    copy.CopyFrom(meta)
    return copy


def whole(meta):
    """The tf.Graph of a MetaGraphDef, imported by TensorFlow."""
    with tf.Graph().as_default() as graph:
        tf.train.import_meta_graph(copy_of(meta))
    return graph


def described(graph):
    """{op: (its device, the type and the shape of each output)}; a value for a reference."""
    return {
        op.name: (op.device, [(t.dtype.base_dtype, str(t.shape)) for t in op.outputs])
        for op in graph.get_operations()
    }


@pytest.mark.parametrize("noted", [True, False], ids=["noted", "not noted"])
def test_what_is_asked_for_has_its_device_types_and_shapes(meta, noted):
    meta = copy_of(meta)
    for node in meta.graph_def.node:
        if not noted:
            node.attr.pop(SHAPES, None)
    expected = described(whole(meta))
    assert described(excerpt_of(meta, tensors=expected)) == expected
    assert len({shape for _, outputs in expected.values() for _, shape in outputs}) > 5


def test_a_tensor_needs_no_other_op(meta):
    gradient = next(n.name for n in meta.graph_def.node if n.op.startswith("UnsortedSegmentSum"))
    step = {"global_step", "global_step/Assign", "global_step/Initializer/zeros"}
    names = {op.name for op in excerpt_of(meta, [gradient]).get_operations()}
    assert gradient in names
    assert len(names - step) <= 3  # the step is read by one op, or by two


def test_an_op_that_is_taken_as_it_is_takes_what_it_took(meta):
    name = next(n.name for n in meta.graph_def.node if n.op.startswith("UnsortedSegmentSum"))
    found = excerpt_of(meta, ops=[name]).get_operation_by_name(name)
    expected = whole(meta).get_operation_by_name(name)
    assert found.type == expected.type
    assert [each.name for each in found.inputs] == [each.name for each in expected.inputs]


def test_variables_are_read_and_assigned(meta):
    with excerpt_of(meta, variables=["kernel", "global_step"]).as_default() as graph:
        found = {variable.op.name: variable for variable in tf.global_variables()}
        assert set(found) == {"kernel", "global_step"}
        kernel = found["kernel"]
        step = tf.train.get_global_step()
        assigned = [tf.assign(kernel, tf.fill(kernel.shape, 2.0)), tf.assign(step, 7)]
        for op in graph.get_operations():
            op._set_device("")
        with tf.Session() as session:
            session.run([each.op for each in assigned])
            assert session.run(kernel).tolist() == [[2.0]] * 12
            assert session.run(step) == 7


def test_a_global_step_of_an_old_collection_is_found_as_tensorflow_finds_it():
    with tf.Graph().as_default():
        tf.Variable(0, name="global_step", use_resource=False)
        meta = tf.train.export_meta_graph()
    meta.collection_def[tf.GraphKeys.GLOBAL_STEP].node_list.value.append("global_step:0")
    assert tf.train.get_global_step(excerpt_of(meta)).op.name == "global_step"


def test_attributes_of_a_newer_tensorflow_are_left_out(meta):
    meta = copy_of(meta)
    for node in meta.graph_def.node:
        node.attr["of_a_newer_tensorflow"].b = True
    assert excerpt_of(meta, variables=["kernel"]).get_operation_by_name("kernel")


def test_names_of_what_is_left_out_are_in_use(meta):
    with excerpt_of(meta).as_default():
        assert tf.no_op(name="Adam").name == "Adam_1"
        assert tf.no_op(name="kernel").name == "kernel_1"


def test_what_is_waited_for_is_there_once(meta):
    graph, nodes = excerpt_of(meta), Nodes.of(meta)
    names = ["Adam", "global_step/Assign"]
    for _ in range(2):
        assert [op.name for op in wait_for(graph, nodes, names)] == names
    assert graph.get_operation_by_name("Adam").device == nodes["Adam"].device


def test_what_is_waited_for_may_be_above_what_is_asked_for(meta):
    nodes = Nodes.of(meta)
    below = next(name for name in nodes.by_name if name.startswith("Adam/"))
    graph = excerpt_of(meta, [below])
    assert [op.name for op in wait_for(graph, nodes, ["Adam"])] == ["Adam"]
