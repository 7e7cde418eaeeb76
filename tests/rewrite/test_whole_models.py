"""Big graphs, and graphs that other people published."""

import pytest

from graph_rewrite import Nodes, find_batch_norms, find_updates
from semisync.common.compat import tf
from tests.rewrite import zoo
from tests.support.require import shared


def big(size):
    """A GraphDef of about `size` nodes: copies of one layer with its condition, in a chain."""
    with zoo.graph() as graph:
        zoo.layers.batch_normalization(zoo.rows(), training=zoo.predicate(), name="bn")
    one = graph.as_graph_def()
    shared_names = {"x", "training", "training/input"}
    whole, last = tf.GraphDef(versions=one.versions), "x"
    whole.node.extend(node for node in one.node if node.name in shared_names)
    copies = size // len(one.node)
    for copy in range(copies):
        prefix = "copy{}/".format(copy)

        def renamed(tensor, prefix=prefix, last=last):
            mark, name = ("^", tensor[1:]) if tensor.startswith("^") else ("", tensor)
            if name == "x":
                return mark + last
            return mark + (name if name in shared_names else prefix + name)

        for node in one.node:
            if node.name not in shared_names:
                new = whole.node.add()
                new.CopyFrom(node)
                new.name = prefix + node.name
                del new.input[:]
                new.input.extend(renamed(tensor) for tensor in node.input)
                for value in new.attr["_class"].list.s[:]:
                    new.attr["_class"].list.s.remove(value)
        last = prefix + "bn/batchnorm/add_1"
    return whole, copies


@pytest.mark.long
@pytest.mark.one_tensorflow
def test_every_layer_of_a_graph_of_20000_nodes_is_found():
    graph_def, copies = big(20000)
    assert len(Nodes.of(graph_def)) > 18000
    found = find_batch_norms(graph_def)
    assert [bn.name for bn in found] == ["copy{}/bn".format(copy) for copy in range(copies)]
    assert {bn.training for bn in found} == {"training"}
    assert {len(bn.updates) for bn in found} == {2}
    assert found[7].input == "copy6/bn/batchnorm/add_1"
    assert find_updates(graph_def) == []


# Of published graphs: the kinds of updates of some variables, by hand from the graphs. None has a
# batch normalisation.
PUBLISHED = {
    "criteo_tf_tile/model.ckpt-40000.meta": {("global_step", "add")},
    "haiy_dist_ps/model.ckpt-504.meta": {
        ("beta1_power", "assign"),
        ("beta2_power", "assign"),
        ("global_step", "add"),
    },
    "joonyoung_dist_2shards/model.ckpt-0.meta": {
        ("local/{}/{}".format(layer, part), "assign")
        for layer in ("dense", "dense_1")
        for part in ("kernel", "bias")
    },
    "jhollowayj_distributed/model.ckpt-0.meta": set(),
    "xdl_blaze_model/model.ckpt.meta": set(),
}


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_the_updates_of_published_graphs(name):
    meta = tf.MetaGraphDef.FromString(shared("models", *name.split("/")).read_bytes())
    assert {(update.variable, update.kind) for update in find_updates(meta)} == PUBLISHED[name]


def test_every_published_graph_is_read():
    paths = sorted(shared("models").glob("**/*.meta"))
    assert len(paths) > 5
    for path in paths:
        assert find_batch_norms(tf.MetaGraphDef.FromString(path.read_bytes())) == [], path
