"""Ways of a step: what stands between the loss and the variables, and around them."""

import numpy as np

from semisync.common.compat import tf
from tests.forms import form as forms

form = forms.of("Step", "train")
rate = forms.of("Learning rate", "rate")
loss_of = forms.of("Loss", "loss")
train = tf.train


def adagrad():
    return train.AdagradOptimizer(0.1)


@form("`minimize`")
def minimize(job, loss):
    return adagrad().minimize(loss, job.step)


@form("`minimize` without a global step")
def uncounted(job, loss):
    return adagrad().minimize(loss)


@form("the global step counted by hand")
def counted_by_hand(job, loss):
    with tf.control_dependencies([adagrad().minimize(loss)]):
        return tf.assign_add(job.step, 1).op


@form("`var_list` leaves a table as it is (frozen)")
def frozen(job, loss):
    others = [v for v in tf.trainable_variables() if v.op.name != "table"]
    return adagrad().minimize(loss, job.step, var_list=others)


def clipped(words, clip, **options):
    @form(words, **options)
    def step(job, loss):
        optimizer = adagrad()
        gradients, variables = zip(*optimizer.compute_gradients(loss))
        return optimizer.apply_gradients(zip(clip(gradients), variables), job.step)


def each(function):
    return lambda gradients: [function(tf.convert_to_tensor(g)) for g in gradients]


clipped("`clip_by_global_norm`", lambda gs: tf.clip_by_global_norm(gs, 0.05)[0])
clipped(
    "`clip_by_global_norm`, resource variables",
    lambda gs: tf.clip_by_global_norm(gs, 0.05)[0],
    resource=True,
)
clipped("`clip_by_norm`", lambda gs: [tf.clip_by_norm(g, 0.02) for g in gs])
clipped("`clip_by_average_norm`", each(lambda g: tf.clip_by_average_norm(g, 0.001)))
clipped("`clip_by_value`", each(lambda g: tf.clip_by_value(g, -0.01, 0.02)))
clipped("gradients scaled", each(lambda g: g * 0.5))
clipped("gradients without NaN (`tf.where(is_nan)`)", each(
    lambda g: tf.where(tf.is_nan(g), tf.zeros_like(g), g)
))  # fmt: skip


@form("weight decay added to the gradients")
def decayed_weights(job, loss):
    optimizer = adagrad()
    pairs = optimizer.compute_gradients(loss)
    dense = [(tf.convert_to_tensor(g) + 0.01 * v, v) for g, v in pairs]
    return optimizer.apply_gradients(dense, job.step)


@form("loss scaled up, gradients down")
def loss_scale(job, loss):
    optimizer = adagrad()
    job.minimised = loss * 128.0
    pairs = optimizer.compute_gradients(job.minimised)
    scaled = [(tf.convert_to_tensor(g) / 128.0, v) for g, v in pairs]
    return optimizer.apply_gradients(scaled, job.step)


@form("`ExponentialMovingAverage` of the weights after the step")
def averaged(job, loss):
    with tf.control_dependencies([adagrad().minimize(loss, job.step)]):
        return train.ExponentialMovingAverage(0.9).apply(tf.trainable_variables())


@form("two optimizers, two lists of variables (wide and deep)", resource=True)
def wide_and_deep(job, loss):
    tables = [v for v in tf.trainable_variables() if v.op.name == "table"]
    others = [v for v in tf.trainable_variables() if v.op.name != "table"]
    ftrl = train.FtrlOptimizer(0.1, l1_regularization_strength=0.001)
    both = [ftrl.minimize(loss, var_list=tables), adagrad().minimize(loss, var_list=others)]
    with tf.control_dependencies(both):
        return tf.assign_add(job.step, 1).op


@form("two optimizers, both count the global step", resource=True)
def both_count(job, loss):
    tables = [v for v in tf.trainable_variables() if v.op.name == "table"]
    others = [v for v in tf.trainable_variables() if v.op.name != "table"]
    return tf.group(
        train.FtrlOptimizer(0.1).minimize(loss, job.step, var_list=tables),
        adagrad().minimize(loss, job.step, var_list=others),
    )


@form("gradients of a table multiplied by a factor of its own (`gradient_multipliers`)")
def multipliers(job, loss):
    optimizer, found = adagrad(), []
    for g, v in optimizer.compute_gradients(loss):
        if isinstance(g, tf.IndexedSlices):
            g = tf.IndexedSlices(g.values * 0.1, g.indices, g.dense_shape)
        found.append((g, v))
    return optimizer.apply_gradients(found, job.step)


@form("gradients accumulated over two batches, applied in a `tf.cond`")
def accumulated(job, loss):
    optimizer = adagrad()
    pairs = optimizer.compute_gradients(loss)
    sums, moves = [], []
    for g, v in pairs:
        one = tf.get_variable(
            v.op.name + "/sum", v.shape, initializer=tf.zeros_initializer(), trainable=False
        )
        sums.append((one, v))
        moves.append(tf.assign_add(one, tf.convert_to_tensor(g)))
    with tf.control_dependencies(moves):
        step = tf.assign_add(job.step, 1)

        def apply():
            with tf.control_dependencies([optimizer.apply_gradients(sums)]):
                return tf.group(*[tf.assign(one, tf.zeros_like(one)) for one, _ in sums])

        return tf.cond(tf.equal(step % 2, 0), apply, tf.no_op)


@form("a counter of examples beside the step")
def counter(job, loss):
    seen = tf.get_variable("seen", [], tf.int64, tf.zeros_initializer(), trainable=False)
    rows = tf.shape(job.again("label"), out_type=tf.int64)[0]
    job.beside.append(tf.assign_add(seen, rows))
    return adagrad().minimize(loss, job.step)


@form("the table's rows held to a norm after the step (`tf.assign` of `clip_by_norm`)")
def held(job, loss):
    with tf.control_dependencies([adagrad().minimize(loss, job.step)]):
        table = [v for v in tf.trainable_variables() if v.op.name == "table"][0]
        return tf.assign(table, tf.clip_by_norm(table, 1.0, [1])).op


@form("`tf.contrib.layers.optimize_loss`", only=1)
def optimize_loss(job, loss):
    from tensorflow.contrib import layers

    return layers.optimize_loss(loss, job.step, 0.1, "Adagrad", clip_gradients=0.1)


@form("`slim.learning.create_train_op`", only=1)
def create_train_op(job, loss):
    from tensorflow.contrib import slim

    return slim.learning.create_train_op(loss, adagrad(), global_step=job.step)


RATES = {
    "`exponential_decay`, staircase": lambda s: train.exponential_decay(0.1, s, 2, 0.7, True),
    "`polynomial_decay`": lambda s: train.polynomial_decay(0.1, s, 8, 0.01),
    "`piecewise_constant`": lambda s: train.piecewise_constant(s, [2, 3], [0.1, 0.05, 0.02]),
    "`cosine_decay`": lambda s: train.cosine_decay(0.1, s, 8),
    "`inverse_time_decay`": lambda s: train.inverse_time_decay(0.1, s, 4, 0.5),
    "a warm-up in a `tf.cond`": lambda s: tf.cond(
        s < 4, lambda: 0.025 * (tf.cast(s, tf.float32) + 1.0), lambda: tf.constant(0.1)
    ),
}
for words, make in RATES.items():
    rate(words)(lambda job, _, make=make: make(job.step))


@rate("a variable")
def variable_rate(job, _):
    return tf.get_variable("learning_rate", initializer=0.1, trainable=False)


@rate("fed with each batch")
def fed_rate(job, _):
    job.points.append(lambda state: {"learning_rate:0": np.float32(state.uniform(0.05, 0.1))})
    return tf.placeholder(tf.float32, [], "learning_rate")


@rate("fed, with a default")
def default_rate(job, _):
    return tf.placeholder_with_default(0.1, [], "learning_rate")


def losses(words, add):
    @loss_of(words)
    def build(job, logit):
        found = tf.nn.sigmoid_cross_entropy_with_logits(labels=job.label(), logits=logit)
        return add(job, tf.reduce_mean(found), logit)


def kernel():
    return [v for v in tf.trainable_variables() if v.op.name == "first"][0]


def table():
    return [v for v in tf.trainable_variables() if v.op.name == "table"][0]


losses("L2 of a kernel", lambda job, loss, _: loss + 0.01 * tf.nn.l2_loss(kernel()))
losses("L1 of a kernel", lambda job, loss, _: loss + 0.01 * tf.reduce_sum(tf.abs(kernel())))
losses("L2 of a whole table", lambda job, loss, _: loss + 0.01 * tf.nn.l2_loss(table()))
losses(
    "L2 of the rows looked up",
    lambda job, loss, _: (
        loss + 0.01 * tf.nn.l2_loss(tf.nn.embedding_lookup(table(), job.again("ids")))
    ),
)


@loss_of("`tf.losses.sigmoid_cross_entropy`, `get_total_loss`")
def of_losses(job, logit):
    tf.losses.sigmoid_cross_entropy(job.label(), logit)
    return tf.losses.get_total_loss()


@loss_of("weighted examples")
def weighted(job, logit):
    found = tf.nn.sigmoid_cross_entropy_with_logits(labels=job.label(), logits=logit)
    weights = tf.abs(job.numbers("weight", ()))
    return tf.reduce_sum(found * weights) / tf.reduce_sum(weights)


@loss_of("log loss by hand")
def log_loss(job, logit):
    p, label = tf.sigmoid(logit), job.label()
    return -tf.reduce_mean(label * tf.log(p + 1e-7) + (1 - label) * tf.log(1 - p + 1e-7))


@loss_of("two tasks' losses, of `tf.add_n`")
def two_tasks(job, logit):
    other = job.numbers("other_label", ())
    found = tf.nn.sigmoid_cross_entropy_with_logits(labels=job.label(), logits=logit)
    return tf.add_n([tf.reduce_mean(found), 0.5 * tf.reduce_mean(tf.square(logit - other))])


@loss_of("pairs of rows (BPR)")
def pairs(job, logit):
    label = tf.expand_dims(job.label(), 0)
    wins = tf.cast(tf.transpose(label) > label, tf.float32)
    apart = tf.expand_dims(logit, 1) - tf.expand_dims(logit, 0)
    return tf.reduce_sum(wins * tf.nn.softplus(-apart)) / (tf.reduce_sum(wins) + 1.0)
