"""A graph of 20,000 ops is rewritten whole; how long it takes is for the benchmarks to say."""

import pytest

import graph_rewrite
from semisync.common.compat import tf

pytestmark = pytest.mark.one_tensorflow

OPS = 20000


def large_graph():
    """A MetaGraphDef with a long model in front of its loss."""
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, 4], name="x")
        weight = tf.get_variable("w", [4, 4])
        value = tf.matmul(x, weight)
        loss = tf.reduce_sum(value)
        step = tf.train.get_or_create_global_step()
        tf.train.AdamOptimizer().minimize(loss, global_step=step)
        meta = tf.train.export_meta_graph()
    missing = OPS - len(meta.graph_def.node)
    for number in range(missing):
        before = "more_{}".format(number - 1) if number else "x"
        node = meta.graph_def.node.add(name="more_{}".format(number), op="Identity")
        node.attr["T"].type = tf.float32.as_datatype_enum
        node.input.append(before)
    return meta


@pytest.mark.long
def test_a_graph_of_20000_ops():
    meta = large_graph()
    out, report = graph_rewrite.semi_synchronize(meta, 4)
    assert report.nodes == OPS
    assert len(out.graph_def.node) > OPS
    assert report.stand_ins == ["Adam"]
    assert not {"SaveV2", "RestoreV2"} & {node.op for node in out.graph_def.node}  # nor before


def tables(count):
    """A MetaGraphDef of a job with that many embedding tables on two parameter servers."""
    place = tf.train.replica_device_setter(ps_tasks=2, worker_device="/job:worker")
    with tf.Graph().as_default(), tf.device(place):
        loss = 0.0
        for number in range(count):
            table = tf.get_variable("table_{}".format(number), [100 + number, 4])
            ids = tf.placeholder(tf.int64, [None])
            loss += tf.reduce_sum(tf.nn.embedding_lookup(table, ids))
        step = tf.train.get_or_create_global_step()
        tf.train.AdagradOptimizer(0.1).minimize(loss, global_step=step)
        return tf.train.export_meta_graph()


@pytest.mark.long
def test_a_table_more_costs_few_ops():
    added = []
    for count in (10, 30):
        meta = tables(count)
        out, _ = graph_rewrite.semi_synchronize(meta, 4)
        added.append(len(out.graph_def.node) - len(meta.graph_def.node))
    # three of them for the plain step, which no run needs, four to refuse what is not finite
    assert added[1] - added[0] <= 20 * 10
