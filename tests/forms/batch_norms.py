"""Batch normalisation, by layers and by hand."""

import functools

from semisync.common.compat import tf
from tests.forms import form as forms
from tests.forms.ways import MOMENTS, MOVES, NORMALISATIONS, hands_on
from tests.rewrite.zoo import keras, layers

form = forms.of("BatchNorm", "net")
EMA = tf.train.ExponentialMovingAverage


def variables(shape=(4,)):
    """(beta, gamma, moving mean, moving variance)."""
    zeros, ones = tf.zeros_initializer(), tf.ones_initializer()
    beta = tf.get_variable("beta", shape, initializer=zeros)
    gamma = tf.get_variable("gamma", shape, initializer=ones)
    mean = tf.get_variable("moving_mean", shape, initializer=zeros, trainable=False)
    variance = tf.get_variable("moving_variance", shape, initializer=ones, trainable=False)
    return beta, gamma, mean, variance


def chosen(job, batch, moving):
    """The batch's statistics in training, else the moving ones."""
    return tf.cond(job.training, lambda: tuple(batch), lambda: tuple(map(tf.identity, moving)))


def update(*ops):
    """Puts ops into UPDATE_OPS, for which the train op waits."""
    for op in ops:
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, op)


def moved(moving, batch):
    """Moves of the moving statistics towards the batch's."""
    return [tf.assign_sub(v, (v - s) * 0.1) for v, s in zip(moving, batch)]


def statistics(job, moving, batch):
    """(mean, variance), moved by the train op: the batch's in training, else the moving ones."""
    update(*moved(moving, batch))
    return chosen(job, batch, moving)


def by_hand(job, net, move="v -= (v - s) r", moments="tf.nn.moments", normalise="tf.nn"):
    with tf.variable_scope("norm"):
        beta, gamma, *moving = variables()
        batch = MOMENTS[moments](net)
        update(*[MOVES[move](*pair) for pair in zip(moving, batch)])
        mean, variance = chosen(job, batch, moving)
        return NORMALISATIONS[normalise](net, mean, variance, gamma, beta)


for number, way in enumerate(sorted(MOVES)):
    words = "by hand, moving averages as `{}`".format(way)
    form(words, resource=bool(number % 2))(functools.partial(by_hand, move=way))
for number, way in enumerate(sorted(set(MOMENTS) - {"tf.nn.moments"})):
    words = "by hand, moments by {}".format(way)
    form(words, resource=bool(number % 2))(functools.partial(by_hand, moments=way))
for number, way in enumerate(sorted(set(NORMALISATIONS) - {"tf.nn"})[::2]):
    words = "by hand, normalised as `{}`".format(way)
    form(words, resource=bool(number % 2))(functools.partial(by_hand, normalise=way))
form("by hand, in control flow 2", resource=True, control_flow=2)(by_hand)


@form("by hand, its statistics handed on by identity, print, checks")
def handed_on(job, net):
    with tf.variable_scope("norm"):
        beta, gamma, *moving = variables()
        batch = tf.nn.moments(net, [0])
        update(*moved(moving, [hands_on(one, "statistic") for one in batch]))
        mean, variance = chosen(job, batch, moving)
        return tf.nn.batch_normalization(net, mean, variance, beta, gamma, 1e-3)


@form("by hand, always in training", trains=True)
def trains_always(job, net):
    with tf.variable_scope("norm"):
        beta, gamma, *moving = variables()
        batch = tf.nn.moments(net, [0])
        update(*moved(moving, batch))
        return tf.nn.batch_normalization(net, batch[0], batch[1], beta, gamma, 1e-3)


@form("by hand, always in training, its statistics by `tf.identity` after the updates", trains=True)
def identity_after(job, net):
    with tf.variable_scope("norm"):
        beta, gamma, *moving = variables()
        batch = tf.nn.moments(net, [0])
        moves = moved(moving, batch)
        with tf.control_dependencies(moves):
            mean, variance = map(tf.identity, batch)
        return tf.nn.batch_normalization(net, mean, variance, beta, gamma, 1e-3)


@form("by hand, its statistics behind `tf.stop_gradient`")
def without_gradient(job, net):
    with tf.variable_scope("norm"):
        beta, gamma, *moving = variables()
        batch = [tf.stop_gradient(one) for one in tf.nn.moments(net, [0])]
        mean, variance = statistics(job, moving, batch)
        return tf.nn.batch_normalization(net, mean, variance, beta, gamma, 1e-3)


@form("by hand, variables of [1, channels] (`keep_dims`)")
def kept_dims(job, net):
    with tf.variable_scope("norm"):
        (beta, gamma, *moving), batch = variables((1, 4)), tf.nn.moments(net, [0], keep_dims=True)
        mean, variance = statistics(job, moving, batch)
        return (net - mean) / tf.sqrt(variance + 1e-3) * gamma + beta


@form("by hand, one gamma and beta for all channels")
def one_affine(job, net):
    with tf.variable_scope("norm"):
        moving, batch = variables()[2:], tf.nn.moments(net, [0])
        gamma, beta = tf.get_variable("scale", []), tf.get_variable("offset", [])
        mean, variance = statistics(job, moving, batch)
        return (net - mean) / tf.sqrt(variance + 1e-3) * gamma + beta


@form("by hand, read without gamma and beta too")
def read_within(job, net):
    with tf.variable_scope("norm"):
        beta, gamma, *moving = variables()
        batch = tf.nn.moments(net, [0])
        mean, variance = statistics(job, moving, batch)
        unit = (net - mean) / tf.sqrt(variance + 1e-3)
        return tf.concat([unit, unit * gamma + beta], 1)


@form("a gamma and a beta per domain, of the same statistics")
def domains(job, net):
    with tf.variable_scope("norm"):
        beta, gamma, *moving = variables()
        with tf.variable_scope("other"):
            others = variables()[:2]
        batch = tf.nn.moments(net, [0])
        mean, variance = statistics(job, moving, batch)
        both = [(beta, gamma), others]
        found = [tf.nn.batch_normalization(net, mean, variance, *one, 1e-3) for one in both]
        return tf.concat(found, 1)


@form("by hand, without gamma and beta")
def bare(job, net):
    with tf.variable_scope("norm"):
        moving = variables()[2:]
        batch = tf.nn.moments(net, [0])
        mean, variance = statistics(job, moving, batch)
        return (net - mean) / tf.sqrt(variance + 1e-3)


@form("by hand, `ExponentialMovingAverage.apply` beside the layer")
def average_beside(job, net):
    with tf.variable_scope("norm"):
        beta, gamma = variables()[:2]
        batch, average = tf.nn.moments(net, [0]), EMA(0.9)
        update(average.apply(batch))
        mean, variance = chosen(job, batch, [average.average(one) for one in batch])
        return tf.nn.batch_normalization(net, mean, variance, beta, gamma, 1e-3)


def average_in_branch(job, net):
    with tf.variable_scope("norm"):
        beta, gamma = variables()[:2]
        batch, average = tf.nn.moments(net, [0]), EMA(0.9)

        def trained():
            with tf.control_dependencies([average.apply(batch)]):
                return tf.identity(batch[0]), tf.identity(batch[1])

        def recalled():
            return tuple(tf.identity(average.average(one)) for one in batch)

        mean, variance = tf.cond(job.training, trained, recalled)
        return tf.nn.batch_normalization(net, mean, variance, beta, gamma, 1e-3)


form("by hand, `ExponentialMovingAverage.apply` in the branch of a `tf.cond`")(average_in_branch)


@form("by hand, an average corrected for its start at zero (`zero_debias`)", resource=True)
def corrected(job, net):
    with tf.variable_scope("norm"):
        beta, gamma = variables()[:2]
        batch, average = tf.nn.moments(net, [0]), EMA(0.9, zero_debias=True)
        update(average.apply(batch))
        mean, variance = chosen(job, batch, [average.average(one) for one in batch])
        return tf.nn.batch_normalization(net, mean, variance, beta, gamma, 1e-3)


def assigned_in_branch(job, net):
    with tf.variable_scope("norm"):
        beta, gamma, *moving = variables()
        batch = tf.nn.moments(net, [0])

        def trained():
            moves = [v.assign_sub((v - s) * 0.1) for v, s in zip(moving, batch)]
            with tf.control_dependencies(moves):
                return tf.identity(batch[0]), tf.identity(batch[1])

        mean, variance = tf.cond(job.training, trained, lambda: tuple(map(tf.identity, moving)))
        return tf.nn.batch_normalization(net, mean, variance, beta, gamma, 1e-3)


form("by hand, assigned in the branch of a `tf.cond`")(assigned_in_branch)
form("by hand, assigned in a branch of control flow 2", resource=True, control_flow=2)(
    assigned_in_branch
)


@form("by hand, all of the layer in the branches of a `tf.cond`")
def all_in_branch(job, net):
    with tf.variable_scope("norm"):
        beta, gamma, *moving = variables()

        def trained():
            batch = tf.nn.moments(net, [0])
            moves = [tf.assign(v, v * 0.9 + s * 0.1) for v, s in zip(moving, batch)]
            with tf.control_dependencies(moves):
                return tf.nn.batch_normalization(net, batch[0], batch[1], beta, gamma, 1e-3)

        def scored():
            return tf.nn.batch_normalization(net, moving[0], moving[1], beta, gamma, 1e-3)

        return tf.cond(job.training, trained, scored)


@form("by hand, the layer's output waits for the updates", trains=True)
def waited_for(job, net):
    with tf.variable_scope("norm"):
        beta, gamma, *moving = variables()
        batch = tf.nn.moments(net, [0])
        moves = moved(moving, batch)
        with tf.control_dependencies(moves):
            return tf.nn.batch_normalization(net, batch[0], batch[1], beta, gamma, 1e-3)


@form("by hand, updates in one `tf.group` with the train op")
def grouped(job, net):
    with tf.variable_scope("norm"):
        beta, gamma, *moving = variables()
        batch = tf.nn.moments(net, [0])
        job.beside += moved(moving, batch)
        mean, variance = chosen(job, batch, moving)
        return tf.nn.batch_normalization(net, mean, variance, beta, gamma, 1e-3)


@form("by hand, `tf.where` chooses the statistics")
def where(job, net):
    with tf.variable_scope("norm"):
        beta, gamma, *moving = variables()
        batch = tf.nn.moments(net, [0])
        update(*moved(moving, batch))
        trains = tf.fill([4], job.training)
        mean, variance = (tf.where(trains, *pair) for pair in zip(batch, moving))
        return tf.nn.batch_normalization(net, mean, variance, beta, gamma, 1e-3)


@form("by hand, normalised by what the batch has just moved", trains=True)
def late(job, net):
    with tf.variable_scope("norm"):
        beta, gamma, *moving = variables()
        moves = [v.assign_sub((v - s) * 0.1) for v, s in zip(moving, tf.nn.moments(net, [0]))]
        with tf.control_dependencies(moves):
            read = [v.read_value() for v in moving]
            return tf.nn.batch_normalization(net, read[0], read[1], beta, gamma, 1e-3)


@form("by hand, statistics of weighted rows")
def weighted(job, net):
    with tf.variable_scope("norm"):
        beta, gamma, *moving = variables()
        weights = tf.abs(job.numbers("row_weights", (1,)))
        batch = tf.nn.weighted_moments(net, [0], weights)
        mean, variance = statistics(job, moving, batch)
        return tf.nn.batch_normalization(net, mean, variance, beta, gamma, 1e-3)


@form("by hand, statistics of weighted rows, always in training", trains=True)
def weighted_always(job, net):
    with tf.variable_scope("norm"):
        beta, gamma, *moving = variables()
        weights = tf.abs(job.numbers("row_weights", (1,)))
        mean = tf.reduce_mean(net * weights, 0) / tf.reduce_mean(weights)
        variance = tf.reduce_mean(tf.square(net - mean) * weights, 0) / tf.reduce_mean(weights)
        update(*moved(moving, (mean, variance)))
        return tf.nn.batch_normalization(net, mean, variance, beta, gamma, 1e-3)


@form("by hand, the momentum is a variable", resource=True)
def momentum_variable(job, net):
    with tf.variable_scope("norm"):
        beta, gamma, *moving = variables()
        batch = tf.nn.moments(net, [0])
        momentum = tf.get_variable("momentum", initializer=0.9, trainable=False)
        update(*[tf.assign(v, v * momentum + s * (1 - momentum)) for v, s in zip(moving, batch)])
        mean, variance = chosen(job, batch, moving)
        return tf.nn.batch_normalization(net, mean, variance, beta, gamma, 1e-3)


@form("by hand, of `tf.nn.fused_batch_norm`", trains=True)
def fused_by_hand(job, net):
    with tf.variable_scope("norm"):
        beta, gamma, *moving = variables()
        x = tf.reshape(net, [-1, 1, 1, 4])
        fused, *batch = tf.nn.fused_batch_norm(x, gamma, beta, is_training=True)
        update(*moved(moving, batch))
        return tf.reshape(fused, [-1, 4])


@form("shared by two towers, whose updates run one after the other")
def towers(job, net):
    found, moves = [], []
    for one in (net, net * 0.5 + 1.0):
        with tf.variable_scope("norm", reuse=tf.AUTO_REUSE):
            beta, gamma, *moving = variables()
            batch = tf.nn.moments(one, [0])
            with tf.control_dependencies(moves):
                moves = moved(moving, batch)
            mean, variance = chosen(job, batch, moving)
            found.append(tf.nn.batch_normalization(one, mean, variance, beta, gamma, 1e-3))
    update(*moves)
    return tf.concat(found, 1)


def layer(job, net, **options):
    options = dict({"momentum": 0.9, "training": True, "name": "norm"}, **options)
    if options["training"] == "fed":
        options["training"] = job.training
    return layers.batch_normalization(net, **options)


def image(job, net, **options):
    found = layer(job, tf.reshape(net, [-1, 2, 1, 2]), fused=True, **options)
    return tf.reshape(found, [-1, 4])


def of_layer(words, build, of_form=None, **options):
    form("`tf.layers.batch_normalization`" + words, **(of_form or {}))(
        functools.partial(build, **options)
    )


def planes(job, net, **options):
    """Of as many channels, on the first axis, as values on the last."""
    found = layer(job, tf.reshape(net, [-1, 2, 2]), axis=1, fused=False, **options)
    return tf.reshape(found, [-1, 4])


V2 = {"resource": True, "control_flow": 2}
of_layer(", `training=True`", layer, {"trains": True})
of_layer(", `training` fed", layer, training="fed")
of_layer(", `training` fed, control flow 2", layer, V2, training="fed")
of_layer(", `training=False`", layer, training=False)
of_layer(" without gamma and beta (Dice)", layer, center=False, scale=False, training="fed")
of_layer(" with `renorm`", layer, {"trains": True}, renorm=True)
of_layer(" with `virtual_batch_size`", layer, {"trains": True}, virtual_batch_size=4)
of_layer(", fused, `training` fed", image, training="fed")
of_layer(", fused, `training` fed, control flow 2", image, V2, training="fed")


of_layer(" of axis 1, `training` fed", planes, training="fed")
of_layer(" of axis 1, `training=True`", planes, {"trains": True})
of_layer(" of axis 1, `training=False`", planes, training=False)


@form("`tf.layers.batch_normalization` under a partitioner")
def partitioned(job, net):
    with tf.variable_scope("parts", partitioner=tf.fixed_size_partitioner(2)):
        return layer(job, net, training="fed")


@form("`tf.layers.batch_normalization` whose updates no op runs")
def forgotten(job, net):
    found = layer(job, net, training="fed")
    del tf.get_collection_ref(tf.GraphKeys.UPDATE_OPS)[:]
    return found


@form("`tf.keras.layers.BatchNormalization`, `training` fed", resource=True)
def keras_layer(job, net):
    made = keras.layers.BatchNormalization(momentum=0.9, name="norm")
    found = made(net, training=job.training)
    update(*made.updates)
    return found


@form("`tf.keras.layers.BatchNormalization`, Keras' learning phase", resource=True)
def learning_phase(job, net):
    made = keras.layers.BatchNormalization(momentum=0.9, name="norm")
    found = made(net)
    update(*made.updates)
    job.steps[keras.backend.learning_phase().name] = True
    return found


def contrib(job, net, **options):
    from tensorflow.contrib import layers as found

    return found.batch_norm(
        net, decay=0.9, scale=True, is_training=job.training, scope="norm", **options
    )


for words, options in {
    "": {},
    ", updates in place": {"updates_collections": None},
    " with `zero_debias_moving_mean`": {"zero_debias_moving_mean": True},
}.items():
    form("`tf.contrib.layers.batch_norm`" + words, only=1)(functools.partial(contrib, **options))
