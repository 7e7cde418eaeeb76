"""Time of `semisync rewrite` for a large graph, compared with TensorFlow's own import and export.

    python -m benchmarks.rewrite [--nodes N] [--repeats N] [--graph NAME]

The MetaGraphs: "chain", one long model; "tables", as many embedding tables as fit, on 4 parameter
servers, trained by gradient descent; "batch_norms", a stack of convolutions with fused BatchNorms
on 4 parameter servers whose updates stand before the train op, as users write it, so that every
gradient op waits for every update: millions of control edges; and, with TensorFlow 1.15,
"conditions", such a stack with tf.layers and a fed `training`.

The peer is tf.train.import_meta_graph and export_meta_graph of the same MetaGraph. Prints a
Markdown table: median [least, most] in seconds; the ratio is taken within a repeat.
"""

import functools
import gc

import graph_rewrite
from benchmarks.harness.options import AnyOf, options
from benchmarks.harness.turns import ratios, turns
from benchmarks.tables import head, row, spread, timed
from semisync.common.compat import tf

LAYER_OPS = 125  # at least, per layer, with its gradients and its part of Adam
TABLE_OPS = 38  # at least, per table, with its gradient and its step
CONDITION_OPS = 256  # about, per layer with conditions


def chain(nodes):
    """A MetaGraphDef with a long model in front of its loss."""
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, 4], name="x")
        loss = tf.reduce_sum(tf.matmul(x, tf.get_variable("w", [4, 4])))
        step = tf.train.get_or_create_global_step()
        tf.train.AdamOptimizer().minimize(loss, global_step=step)
        meta = tf.train.export_meta_graph()
    for number in range(nodes - len(meta.graph_def.node)):
        before = "more_{}".format(number - 1) if number else "x"
        node = meta.graph_def.node.add(name="more_{}".format(number), op="Identity", input=[before])
        node.attr["T"].type = tf.float32.as_datatype_enum
    return meta


def placement():
    return tf.train.replica_device_setter(ps_tasks=4, worker_device="/job:worker/task:0")


def tables(nodes):
    """A MetaGraphDef of at least that many nodes, with an embedding table for each loss term."""
    with tf.Graph().as_default(), tf.device(placement()):
        loss = 0.0
        for number in range(nodes // TABLE_OPS):
            table = tf.get_variable("table_{}".format(number), [1000 + number, 8])
            ids = tf.placeholder(tf.int64, [None])
            loss += tf.reduce_sum(tf.nn.embedding_lookup(table, ids))
        step = tf.train.get_or_create_global_step()
        tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
        return tf.train.export_meta_graph()


def batch_norms(nodes):
    """A MetaGraphDef of at least that many nodes, a stack of convolutions with BatchNorms."""
    with tf.Graph().as_default(), tf.device(placement()):
        net = tf.placeholder(tf.float32, [None, 8, 8, 4])
        for number in range(nodes // LAYER_OPS):
            with tf.variable_scope("layer_{}".format(number)):
                net += layer(net)
        return trained(net)


def trained(net):
    """The MetaGraphDef of the default graph, which trains after the updates."""
    step = tf.train.get_or_create_global_step()
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        tf.train.AdamOptimizer().minimize(tf.reduce_mean(net), global_step=step)
    return tf.train.export_meta_graph()


def layer(net):
    kernel = tf.get_variable("kernel", [3, 3, 4, 4])
    net = tf.nn.conv2d(net, kernel, [1, 1, 1, 1], "SAME")
    gamma, beta = tf.get_variable("gamma", [4]), tf.get_variable("beta", [4])
    net, *moments = tf.nn.fused_batch_norm(net, gamma, beta, epsilon=1e-3)[:3]
    for name, statistic in zip(("moving_mean", "moving_variance"), moments):
        moving = tf.get_variable(name, [4], trainable=False)
        update = tf.assign(moving, moving * 0.9 + statistic * 0.1)
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, update)
    return tf.nn.relu(net)


def conditions(nodes):
    """A MetaGraphDef of about that many nodes, with conditions of control flow version 1."""
    with tf.Graph().as_default(), tf.device(placement()):
        training = tf.placeholder(tf.bool, [])
        net = tf.placeholder(tf.float32, [None, 8])
        for number in range(nodes // CONDITION_OPS):
            weights = tf.get_variable("weights_{}".format(number), [8, 8])
            net = tf.layers.batch_normalization(tf.matmul(net, weights), training=training)
            net = tf.nn.relu(net)
        return trained(net)


GRAPHS = {build.__name__: build for build in (chain, tables, batch_norms)}
if tf.__version__.startswith("1."):
    GRAPHS["conditions"] = conditions  # TensorFlow 2.x has no tf.layers


def seconds(function, *args):
    """Seconds of a call, without garbage collection for earlier ones."""
    gc.collect()
    return timed(function, *args)[0]


def through_tensorflow(meta):
    """Imports and exports a copy, because the import changes its argument."""
    copy = tf.MetaGraphDef()
    copy.CopyFrom(meta)
    with tf.Graph().as_default():
        tf.train.import_meta_graph(copy)
        tf.train.export_meta_graph()


def main():
    args = options(__doc__, nodes=50000, repeats=3, graph=AnyOf(GRAPHS))
    tf.logging.set_verbosity(tf.logging.ERROR)
    print(head("graph | nodes | find_batch_norms | semi_synchronize | import and export | ratio"))
    for name in args.graph:
        meta = GRAPHS[name](args.nodes)
        jobs = [
            (graph_rewrite.find_batch_norms, meta),
            (graph_rewrite.semi_synchronize, meta, 4),
            (through_tensorflow, meta),
        ]
        sides = {job[0]: functools.partial(seconds, *job) for job in jobs}
        found, rewritten, peer = turns(sides, args.repeats).values()
        cells = map(spread, (found, rewritten, peer, ratios(rewritten, peer)))
        print(row(name, len(meta.graph_def.node), *cells))


if __name__ == "__main__":
    main()
