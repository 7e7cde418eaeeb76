"""How a job trains: optimizers, schedules, clips, averages."""

import tensorflow.compat.v1 as tf

train = tf.train


def trained(draw, loss, step, resource):
    """(the train op, [(gradient, variable)] before any clip)."""
    variables = tf.trainable_variables()
    groups = [variables]
    if len(variables) > 3 and draw.may("two optimizers"):
        tables = [one for one in variables if one.op.name.startswith("table")]
        others = [one for one in variables if not one.op.name.startswith("table")]
        groups = [tables, others] if tables else [variables]
    clip = draw.one("clip", "none", "none", "value", "norm", "global norm")
    waits = draw.may("gradients wait for updates")
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    optimizers = [_optimizer(draw, _rate(draw, step)) for _ in groups]
    with tf.control_dependencies(updates if waits else []):
        pairs = [one.compute_gradients(loss, own) for one, own in zip(optimizers, groups)]
        if clip == "value":  # of a sum: a row may come twice
            pairs = [[(tf.convert_to_tensor(g), v) for g, v in own] for own in pairs]
    # Of references a gradient may read what another's step has changed.
    first = [] if resource else [getattr(g, "values", g) for own in pairs for g, _ in own]
    with tf.control_dependencies(updates + first):
        applied = [one.apply_gradients(_clipped(own, clip)) for one, own in zip(optimizers, pairs)]
    with tf.control_dependencies(applied):
        train_op = tf.assign_add(step, 1).op
    if draw.may("averages"):
        with tf.control_dependencies([train_op]):
            train_op = train.ExponentialMovingAverage(0.9).apply(variables)
    return train_op, [pair for own in pairs for pair in own]


def _rate(draw, step):
    form = draw.one("rate", "constant", "constant", "exponential", "polynomial", "warm-up")
    if form == "exponential":
        return train.exponential_decay(0.05, step, 2, 0.7, draw.may("staircase"))
    if form == "polynomial":
        return train.polynomial_decay(0.05, step, 8, 0.01)
    if form == "warm-up":
        done = (tf.cast(step, tf.float32) + 1.0) / 4.0
        return tf.cond(step < 4, lambda: 0.05 * done, lambda: tf.constant(0.05))
    return 0.05


def _optimizer(draw, rate):
    name = draw.one(
        "optimizer", "SGD", "momentum", "Nesterov", "Adagrad", "Adam", "RMSProp", "FTRL", "Adadelta"
    )
    return {
        "SGD": lambda: train.GradientDescentOptimizer(rate),
        "momentum": lambda: train.MomentumOptimizer(rate, 0.9),
        "Nesterov": lambda: train.MomentumOptimizer(rate, 0.9, use_nesterov=True),
        "Adagrad": lambda: train.AdagradOptimizer(rate),
        "Adam": lambda: train.AdamOptimizer(rate, epsilon=1e-4),
        "RMSProp": lambda: train.RMSPropOptimizer(rate, 0.9, 0.5, 1e-4),
        "FTRL": lambda: train.FtrlOptimizer(rate, l1_regularization_strength=0.001),
        "Adadelta": lambda: train.AdadeltaOptimizer(1.0, 0.9, 1e-4),
    }[name]()


def _clipped(pairs, clip):
    if clip == "none":
        return pairs
    gradients, variables = zip(*pairs)
    if clip == "global norm":
        gradients, _ = tf.clip_by_global_norm(gradients, 0.5)
    elif clip == "norm":
        gradients = [tf.clip_by_norm(one, 0.2) for one in gradients]
    else:
        gradients = [tf.clip_by_value(one, -0.02, 0.03) for one in gradients]
    return list(zip(gradients, variables))
