"""BatchNorm as graphs write it, and the forms in which graphs move its statistics.

A layer normalises by the batch in training, by the moving statistics at inference:

    moving = moving momentum + statistic (1 - momentum)

Every worker moves them with each of its batches, unless `GlobalBatchOptimizer` does so instead. The
forms differ in when the old value is read, which matters when others move it meanwhile:

    layers    `tf.layers`: the parameter server reads, subtracts and writes at the batch's end
    keras     Keras, `tf.layers` with resource variables, contrib and slim (which with the fused
              kernel, their default, subtract on the worker): the value is read at the batch's
              start, and the decrement computed from it is subtracted at its end; two workers that
              overlap subtract too much, at a small momentum more than the whole variance
    by-hand   `tf.assign(moving, moving * m + statistic * (1 - m))`: the worker reads the value at
              the batch's start and assigns the sum at its end, which discards what others have
              done meanwhile
"""

from collections import namedtuple

from semisync.common.compat import tf

EPSILON = 1e-3
FORMS = ("layers", "keras", "by-hand")

# `name`; `moments`, (mean, variance) of the batch, tensors; `moving`, the same as variables.
Layer = namedtuple("Layer", "name moments moving")


class Norms:
    """The BatchNorms of one model; `model.logits` calls it for each hidden layer.

    Args:
        training: True normalises by the batch, False by the moving statistics.
    """

    def __init__(self, training):
        self._training = training
        self.layers = []

    def __call__(self, rows, name):
        """float32 [batch, units], normalised over the batch, scaled and moved."""
        units = int(rows.shape[1])
        with tf.variable_scope(name):
            gamma = tf.get_variable("gamma", [units], initializer=tf.ones_initializer())
            beta = tf.get_variable("beta", [units], initializer=tf.zeros_initializer())
            layer = Layer(name, tf.nn.moments(rows, [0]), moving_variables(units))
        self.layers.append(layer)
        mean, variance = layer.moments if self._training else layer.moving
        return tf.nn.batch_normalization(rows, mean, variance, beta, gamma, EPSILON)

    def moving(self, form=None):
        """Dict of name in a checkpoint -> variable: the layers' own, or those that a form keeps."""
        kinds = ("moving_mean", "moving_variance")
        return {
            "/".join(([form] if form else []) + [layer.name, kind]): variable
            for layer in self.layers
            for kind, variable in zip(kinds, layer.moving)
        }


def moving_variables(units):
    """(mean, variance) in the current scope, each [units]."""
    return tuple(
        tf.get_variable("moving_" + name, [units], initializer=initial, trainable=False)
        for name, initial in (("mean", tf.zeros_initializer()), ("variance", tf.ones_initializer()))
    )


def move(variable, statistic, momentum, form):
    """The op that moves a variable once the current control dependencies have run."""
    if form == "by-hand":
        with tf.control_dependencies(None):
            kept = variable * momentum
        return tf.assign(variable, kept + statistic * (1 - momentum))
    with tf.colocate_with(variable.op):
        if form == "layers":
            return tf.assign_sub(variable, (variable - statistic) * (1 - momentum))
        with tf.control_dependencies(None):  # as in TensorFlow, where the read waits for nothing
            read = variable.read_value()
        return tf.assign_sub(variable, (read - statistic) * (1 - momentum))


def keep(form, layer, statistics, momentum):
    """Makes moving variables of a layer beside its own, moved in one of FORMS.

    Args:
        statistics: the batch's (mean, variance).

    Returns: (the variables, the ops that move them).
    """
    with tf.variable_scope(form), tf.variable_scope(layer.name, use_resource=form == "keras"):
        variables = moving_variables(int(statistics[0].shape[0]))
    return variables, [move(v, s, momentum, form) for v, s in zip(variables, statistics)]
