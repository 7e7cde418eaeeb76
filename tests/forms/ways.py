"""The ways to write a BatchNorm's parts by hand, a moving average, moments, a normalisation; and to
hand on a tensor."""

from semisync.common.compat import tf

RATE = 0.1

# v moves towards s.
MOVES = {
    "v -= (v - s) r": lambda v, s: tf.assign_sub(v, (v - s) * RATE),
    "v -= r (v - s)": lambda v, s: tf.assign_sub(v, RATE * (v - s)),
    "v += (s - v) r": lambda v, s: tf.assign_add(v, (s - v) * RATE),
    "v += (s - v) / c": lambda v, s: tf.assign_add(v, (s - v) / 10),
    "v = v - (v - s) r": lambda v, s: tf.assign(v, v - (v - s) * RATE),
    "v = v + r (s - v)": lambda v, s: tf.assign(v, v + RATE * (s - v)),
    "v = v + (s - v) / c": lambda v, s: tf.assign(v, v + (s - v) / 10),
    "v = v m + s (1 - m)": lambda v, s: tf.assign(v, v * (1 - RATE) + s * RATE),
    "v = (1 - m) s + m v": lambda v, s: tf.assign(v, RATE * s + (1 - RATE) * v),
}
NORMALISATIONS = {
    "tf.nn": lambda x, m, v, g, b: tf.nn.batch_normalization(x, m, v, b, g, 1e-5),
    "(x - m) / sqrt g + b": lambda x, m, v, g, b: (x - m) / tf.sqrt(v + 1e-5) * g + b,
    "g (x - m) rsqrt + b": lambda x, m, v, g, b: g * ((x - m) * tf.rsqrt(v + 1e-5)) + b,
    "(x - m) (g rsqrt) + b": lambda x, m, v, g, b: (x - m) * (g * tf.rsqrt(1e-5 + v)) + b,
    "(x - m) / v ** .5 g + b": lambda x, m, v, g, b: (x - m) / (v + 1e-5) ** 0.5 * g + b,
    "g (x - m) / sqrt + b": lambda x, m, v, g, b: g * (x - m) / tf.sqrt(v + 1e-5) + b,
    "(g (x - m)) rsqrt + b": lambda x, m, v, g, b: g * (x - m) * tf.rsqrt(v + 1e-5) + b,
    "(x - m) (g / sqrt) + b": lambda x, m, v, g, b: (x - m) * (g / tf.sqrt(v + 1e-5)) + b,
    "b + g x_hat": lambda x, m, v, g, b: b + g * tf.divide(x - m, tf.sqrt(v + 1e-5)),
}


def _one_mean(x):
    mean = tf.reduce_mean(x, 0)
    return mean, tf.reduce_mean(tf.square(x - mean), 0)


def _squares(x):
    mean = tf.reduce_mean(x, 0)
    return mean, tf.reduce_mean(x * x, 0) - mean * mean


MOMENTS = {
    "tf.nn.moments": lambda x: tf.nn.moments(x, [0]),
    "sufficient_statistics": lambda x: tf.nn.normalize_moments(
        *tf.nn.sufficient_statistics(x, [0])[:3], shift=None
    ),
    "reduce_mean, square": _one_mean,
    "squares": _squares,
}


def hands_on(tensor, place):
    """The tensor itself, behind every op that hands it on and has a gradient where it needs one."""
    floating = tensor.dtype.is_floating
    shape = tensor.shape
    tensor = tf.identity_n([tf.identity(tensor), tf.constant(1.0)])[0]
    tensor = tf.Print(tensor, [tf.constant(1)], first_n=0)
    if floating:
        tensor = tf.debugging.check_numerics(tensor, "a form")
    if place in ("ids", "rate", "gradient", "statistic"):
        tensor = tf.raw_ops.Snapshot(input=tf.stop_gradient(tensor))
        tensor = tf.raw_ops.PreventGradient(input=tensor)
    return tf.tuple([tf.ensure_shape(tensor, shape)])[0]
