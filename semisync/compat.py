"""The one module that knows which TensorFlow is there.

Everything in the TF world imports `tf` from here: TensorFlow 1.15's own surface, which
TensorFlow 2.x still carries as `tensorflow.compat.v1`.
"""

import tensorflow.compat.v1 as tf

raw_ops = tf.raw_ops

__all__ = ["raw_ops", "tf"]
