"""A model's job exported, imported and trained, and trained by TensorFlow alone for comparison."""

import collections

import semisync
from semisync.common.compat import tf
from tests.rewrite.models import MOMENTUM, under
from tests.support.variables import load
from tests.wrap.one_process import PATIENCE, Remember

# `train`: the name of the train op. `feeds`: {name of an input: names of its placeholders}.
Exported = collections.namedtuple("Exported", "meta train feeds")


def export(kind, resource=False, scope="", device=None):
    """The `Exported` job of a class of `Model`, as its worker has it.

    Its initial values are the same in each run: some rare ones leave a variable untrained.
    """
    with tf.Graph().as_default(), tf.device(device):
        tf.set_random_seed(1)
        with tf.variable_scope(scope, use_resource=resource):
            model = kind()
            step = tf.train.get_or_create_global_step()
            inputs = model.inputs()
            train = model.train_op(model.loss(inputs), step)
        saver = tf.train.Saver()
        meta = tf.train.export_meta_graph(saver_def=saver.as_saver_def())
    feeds = {name: _names(tensor) for name, tensor in inputs.items()}
    return Exported(meta, train.name, feeds)


def _names(tensor):
    if isinstance(tensor, tf.SparseTensor):
        return [tensor.indices.name, tensor.values.name, tensor.dense_shape.name]
    return [tensor.name]


def fed(feeds, batch):
    """{name of a placeholder: value} for a batch, see `Model.batch`."""
    found = {}
    for name, placeholders in feeds.items():
        found.update(zip(placeholders, batch[name] if len(placeholders) > 1 else [batch[name]]))
    return found


def train(exported, steps):
    """Trains a rewritten job in this process, paced; returns every variable before and after.

    Args:
        exported: an `Exported` whose `meta` is rewritten.
        steps: as for `trained_by_tensorflow`.
    """
    with tf.Graph().as_default():
        tf.train.import_meta_graph(exported.meta)
        hook = semisync.restore_hook(True, patience=PATIENCE)
        memory = Remember()
        with tf.train.MonitoredTrainingSession(hooks=[hook, memory]) as session:
            for batches in steps:
                for batch in batches:
                    session.run(exported.train, fed(exported.feeds, batch))
    return memory.before, memory.after


def within(scope, name):
    """The name of a variable of a scope without that of the scope."""
    return name[len(scope) + 1 :] if scope else name


def trained_by_tensorflow(kind, before, steps, resource=False, scope=""):
    """Trains the plain optimizers from `before`; returns {name: value} of every variable.

    Each global step has a tower for each of its batches, and trains on the mean of their losses:
    that is what a global batch is where each batch is normalised by its own statistics.

    Args:
        kind: the class of the `Model`.
        before: {name within the scope: value} of every variable.
        steps: a list of batches for each global step, all as long; see `Model.batch`.
        resource, scope: as the job was exported with.
    """
    model = kind()
    size = len(steps[0])
    with tf.Graph().as_default(), tf.Session() as session:
        with tf.variable_scope(scope, reuse=tf.AUTO_REUSE, use_resource=resource):
            step = tf.train.get_or_create_global_step()
            towers = [model.inputs() for _ in range(size)]
            loss = tf.add_n([model.loss(tower) for tower in towers]) / size
            parts = [
                (optimizer, optimizer.compute_gradients(loss, under(prefix)))
                for optimizer, prefix in model.optimizers()
            ]
            moved = _moved_statistics(model, size, scope)
            gradients = [getattr(g, "values", g) for _, pairs in parts for g, _ in pairs]
            # Reference variables must not be read again once they are trained.
            with tf.control_dependencies([g for g in gradients if g is not None] + moved):
                trained = [optimizer.apply_gradients(pairs) for optimizer, pairs in parts]
            with tf.control_dependencies(trained):
                train = tf.assign_add(step, 1).op
        variables = {within(scope, v.op.name): v for v in tf.global_variables()}
        assert set(variables) == set(before)
        load(session, {variable: before[name] for name, variable in variables.items()})
        for batches in steps:
            feed = {}
            for tower, batch in zip(towers, batches):
                feed.update((tower[name], batch[name]) for name in tower)
            session.run(train, feed)
        return session.run(variables)


def _moved_statistics(model, size, scope):
    """The ops that move every BatchNorm once, towards the moments of all towers' values."""
    found = {within(scope, v.op.name): v for v in tf.global_variables()}
    moving = {name: variable for name, variable in found.items() if "/moving_" in name}
    inputs = {}
    for name, x in model.normalised:
        inputs.setdefault(name, []).append(x)
    keep, moves = MOMENTUM**size, []
    for name, parts in inputs.items():
        x = tf.concat(parts, 0)
        mean, variance = tf.nn.moments(x, list(range(x.shape.rank - 1)))
        if model.fused:
            count = tf.cast(tf.size(x) // x.shape[-1], tf.float32)
            variance *= count / (count - 1)
        for kind, value in (("mean", mean), ("variance", variance)):
            variable = moving.pop("{}/moving_{}".format(name, kind))
            moves.append(tf.assign(variable, variable * keep + value * (1 - keep)).op)
    assert not moving
    return moves
