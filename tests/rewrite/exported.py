"""A plain job, exported, rewritten, imported and trained in one process.

`export` builds a job as people write them, without semisync, and exports it. `train` does what the
worker of an imported MetaGraph does. Both take what `tests.wrap.one_process` gives: its batches,
its model, and `build`, a function (model, wrap) -> train op; `wrap` stands for nothing here.
"""

import collections

import graph_rewrite
import semisync
from semisync.common.compat import tf
from tests.wrap import one_process
from tests.wrap.one_process import PATIENCE, STEPS, M, Model, Remember

Exported = collections.namedtuple("Exported", "meta train ids targets")


def export(build, resource=False, device=None):
    """The MetaGraphDef of a plain job, and the names of what its worker feeds and fetches."""
    with tf.Graph().as_default(), tf.device(device):
        model = Model(resource)
        train = build(model, lambda optimizer: optimizer)
        saver = tf.train.Saver()
        meta = tf.train.export_meta_graph(saver_def=saver.as_saver_def())
        return Exported(meta, train.name, model.ids.name, model.targets.name)


def rewrite(exported, batches_per_step=M, **options):
    """`exported` with a rewritten MetaGraphDef."""
    meta, _ = graph_rewrite.semi_synchronize(exported.meta, batches_per_step, **options)
    return exported._replace(meta=meta)


def train(exported, batches=one_process.inputs, steps=STEPS, fetch=(), hooks=()):
    """Trains M batches a global step; returns the variables before and after, and the ledger.

    Args:
        exported: rewritten.
        fetch: names of what is fetched with each batch; their values are appended to `fetched`.
    """
    with tf.Graph().as_default():
        tf.train.import_meta_graph(exported.meta)
        hook = semisync.restore_hook(True, patience=PATIENCE)
        memory = Remember()
        with tf.train.MonitoredTrainingSession(hooks=[hook, memory] + list(hooks)) as session:
            for step in range(steps):
                for ids, targets in batches(step):
                    feed = {exported.ids: ids, exported.targets: targets}
                    session.run([exported.train] + list(fetch), feed)
    return memory.before, memory.after, hook.ledger


def sgd(model, wrap, rate=0.1):
    optimizer = tf.train.GradientDescentOptimizer(rate)
    return wrap(optimizer).minimize(model.loss(), global_step=model.step)
