"""Which control flow TensorFlow builds: as it was again afterwards, for the tests that follow."""

import contextlib

from tensorflow.compat import v1 as tf


@contextlib.contextmanager
def control_flow(version):
    """Within it tf.cond and tf.while_loop are, for 1, a part of the graph, and for 2 functions."""
    before = tf.control_flow_v2_enabled()
    _set(version == 2)
    try:
        yield
    finally:
        _set(before)


def _set(functions):
    (tf.enable_control_flow_v2 if functions else tf.disable_control_flow_v2)()
