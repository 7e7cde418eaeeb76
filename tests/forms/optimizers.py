"""Who trains the variables."""

import functools

from semisync.common.compat import tf
from tests.forms import form as forms
from tests.rewrite.zoo import keras

form = forms.of("Optimizer", "optimizer")
step = forms.of("Optimizer", "train")
train = tf.train

OPTIMIZERS = {
    "GradientDescentOptimizer": train.GradientDescentOptimizer,
    "MomentumOptimizer": lambda r: train.MomentumOptimizer(r, 0.9),
    "MomentumOptimizer(use_nesterov=True)": lambda r: train.MomentumOptimizer(
        r, 0.9, use_nesterov=True
    ),
    "AdagradOptimizer": train.AdagradOptimizer,
    "AdamOptimizer": lambda r: train.AdamOptimizer(r, epsilon=1e-4),
    "RMSPropOptimizer": lambda r: train.RMSPropOptimizer(r, 0.9, 0.5, 1e-4),
    "RMSPropOptimizer(centered=True)": lambda r: train.RMSPropOptimizer(
        r * 0.1, 0.9, 0.0, 1e-2, centered=True
    ),
    "FtrlOptimizer": lambda r: train.FtrlOptimizer(r, l1_regularization_strength=0.001),
    "FtrlOptimizer with shrinkage": lambda r: train.FtrlOptimizer(
        r, -0.5, 0.2, 0.001, 0.0, l2_shrinkage_regularization_strength=0.05
    ),
    "AdadeltaOptimizer": lambda r: train.AdadeltaOptimizer(r * 10, 0.9, 1e-4),
    "ProximalGradientDescentOptimizer": lambda r: train.ProximalGradientDescentOptimizer(
        r, 0.001, 0.01
    ),
    "ProximalAdagradOptimizer": lambda r: train.ProximalAdagradOptimizer(r, 0.1, 0.001, 0.01),
}
for number, (name, make) in enumerate(OPTIMIZERS.items()):
    words = "`tf.train.{}`{}".format(name, ", resource variables" if number % 2 else "")
    form(words, resource=bool(number % 2))(lambda job, rate, make=make: make(rate))


@form("`tf.train.AdagradDAOptimizer`")
def dual_averaging(job, rate):
    return train.AdagradDAOptimizer(rate, job.step)


CONTRIB = {
    "LazyAdamOptimizer": lambda opt, r: opt.LazyAdamOptimizer(r, epsilon=1e-4),
    "AdamWOptimizer": lambda opt, r: opt.AdamWOptimizer(0.01, r, epsilon=1e-4),
    "AdaMaxOptimizer": lambda opt, r: opt.AdaMaxOptimizer(r, epsilon=1e-4),
    "NadamOptimizer": lambda opt, r: opt.NadamOptimizer(r, epsilon=1e-4),
    "LARSOptimizer": lambda opt, r: opt.LARSOptimizer(r),
    "MovingAverageOptimizer": lambda opt, r: opt.MovingAverageOptimizer(
        train.AdagradOptimizer(r), 0.9
    ),
}
for name, make in CONTRIB.items():

    def of_contrib(job, rate, make=make):
        from tensorflow.contrib import opt

        return make(opt, rate)

    form("`tf.contrib.opt.{}`".format(name), only=1)(of_contrib)


def of_keras(job, loss, make):
    updates = make(keras.optimizers).get_updates(loss, tf.trainable_variables())
    with tf.control_dependencies(updates):
        return tf.assign_add(job.step, 1).op


for name, make in {
    "SGD": lambda found: found.SGD(0.1),
    "Adam": lambda found: found.Adam(0.1, epsilon=1e-4),
    "Adagrad": lambda found: found.Adagrad(0.1),
}.items():
    step("`tf.keras.optimizers.{}`".format(name), resource=True)(
        functools.partial(of_keras, make=make)
    )


@step("SGD by hand, `assign_sub` of the gradient", resource=True)
def assign_sub(job, loss):
    pairs = zip(tf.trainable_variables(), tf.gradients(loss, tf.trainable_variables()))
    moves = [tf.assign_sub(v, 0.1 * tf.convert_to_tensor(g)) for v, g in pairs]
    with tf.control_dependencies(moves):
        return tf.assign_add(job.step, 1).op


@step("SGD by hand, `scatter_sub` into tables", resource=True)
def scatter_sub(job, loss):
    moves = []
    for v, g in zip(tf.trainable_variables(), tf.gradients(loss, tf.trainable_variables())):
        if isinstance(g, tf.IndexedSlices):
            moves.append(v.scatter_sub(tf.IndexedSlices(0.1 * g.values, g.indices)))
        else:
            moves.append(tf.assign_sub(v, 0.1 * g))
    with tf.control_dependencies(moves):
        return tf.assign_add(job.step, 1).op


@step("SGD by hand, `assign` of the difference", resource=True)
def assign(job, loss):
    pairs = zip(tf.trainable_variables(), tf.gradients(loss, tf.trainable_variables()))
    moves = [tf.assign(v, v - 0.1 * tf.convert_to_tensor(g)) for v, g in pairs]
    with tf.control_dependencies(moves):
        return tf.assign_add(job.step, 1).op


@step("momentum by hand", resource=True)
def momentum(job, loss):
    moves = []
    for v, g in zip(tf.trainable_variables(), tf.gradients(loss, tf.trainable_variables())):
        slot = tf.get_variable(
            v.op.name + "/slot", v.shape, initializer=tf.zeros_initializer(), trainable=False
        )
        moved = tf.assign(slot, 0.9 * slot + tf.convert_to_tensor(g))
        moves.append(tf.assign_sub(v, 0.1 * moved))
    with tf.control_dependencies(moves):
        return tf.assign_add(job.step, 1).op


@step("BERT's `AdamWeightDecayOptimizer`", resource=True)
def bert(job, loss):
    moves = []
    for v, g in zip(tf.trainable_variables(), tf.gradients(loss, tf.trainable_variables())):
        zeros = {"initializer": tf.zeros_initializer(), "trainable": False}
        m = tf.get_variable(v.op.name + "/adam_m", v.shape, **zeros)
        s = tf.get_variable(v.op.name + "/adam_v", v.shape, **zeros)
        g = tf.convert_to_tensor(g)
        next_m = tf.multiply(0.9, m) + tf.multiply(1.0 - 0.9, g)
        next_s = tf.multiply(0.999, s) + tf.multiply(1.0 - 0.999, tf.square(g))
        update = next_m / (tf.sqrt(next_s) + 1e-4)
        if v.shape.ndims > 1:
            update += 0.01 * v
        moves += [v.assign(v - 0.1 * update), m.assign(next_m), s.assign(next_s)]
    return tf.group(*(moves + [job.step.assign(job.step + 1)]))
