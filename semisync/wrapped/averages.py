"""Moving averages of trained variables whose ops wait for the train op, as TensorFlow's page says:

    with tf.control_dependencies([train_op]):
        train_op = averages.apply(tf.trainable_variables())

The train op ends with every local batch, so that such an average moves M times per global step, and
decays M times as fast as in the synchronous job.
"""

import itertools
from typing import Dict

from semisync.aggregate.updates import ADD, SET
from semisync.common.compat import tf
from semisync.common.sentences import some_of
from semisync.common.walks import reachable
from semisync.worker.trains_in import before

_NEAR = 100  # ops between the train op and such an update, at most


def warn(train_op, batches_per_step):
    """Logs which averages of the default graph wait for a train op, where M is more than 1.

    Args:
        train_op: of a `Built`, an op or a tensor.
        batches_per_step: M.
    """
    names = _behind(getattr(train_op, "op", train_op)) if batches_per_step > 1 else []
    if names:
        tf.logging.warning(
            "semisync: %s wait for the train op, and move with every local batch, %d times per "
            "global step: to have them move once, average inside the wrapper, "
            "GlobalBatchOptimizer(tf.contrib.opt.MovingAverageOptimizer(opt, decay), ...)",
            some_of(names, 3),
            batches_per_step,
        )


def _behind(train_op):
    trained = {variable.op.name for variable in tf.trainable_variables()}
    names: Dict[str, None] = {}
    for op in train_op.graph.get_operations():
        if op.type in ADD or op.type in SET:
            name = op.inputs[0].op.name
            is_of_trained = name.rpartition("/")[0] in trained
            if is_of_trained and train_op in itertools.islice(reachable([op], before), _NEAR):
                names[name] = None
    return list(names)
