"""torch optimizers with TensorFlow's formulas, where torch.optim's differ.

    Adam(parameters, rows="all")         tf.train.AdamOptimizer
    Adam(parameters, rows="touched")     LazyAdamOptimizer
    AdamWeightDecay(parameters)          BERT's
    Adadelta, Adagrad, Ftrl, GradientDescent, Momentum, ProximalAdagrad, ProximalGradientDescent,
    RMSProp                              with rows="touched" for tables

`rows` says which rows of a tensor a step changes. TensorFlow updates a dense variable as a whole,
and of a table only the rows that the batch looked up; except Adam, which always moves all.

1. "all": every row, as for dense variables.
2. "touched": with a sparse gradient its rows, those that occur twice summed first. With a dense
   gradient, which does not list the look-ups, the rows in which it is not zero throughout; a
   row that was looked up and whose gradient is exactly zero keeps its slots, where TensorFlow would
   decay them.

The states have the names that a converted checkpoint gives them, so that `load_optimizer` fills
them. Defaults are TensorFlow's. Formulas: tensorflow/core/kernels/training_ops.cc, and
python/training/adam.py for Adam on tables.
"""

from migrate.torchrec.optimizers.adagrads import Adagrad, ProximalAdagrad
from migrate.torchrec.optimizers.adaptive import Adadelta, Adam, AdamWeightDecay, RMSProp
from migrate.torchrec.optimizers.descents import (
    GradientDescent,
    Momentum,
    ProximalGradientDescent,
)
from migrate.torchrec.optimizers.ftrl import Ftrl
from migrate.torchrec.optimizers.row_optimizer import RowOptimizer

__all__ = [
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamWeightDecay",
    "Ftrl",
    "GradientDescent",
    "Momentum",
    "ProximalAdagrad",
    "ProximalGradientDescent",
    "RMSProp",
    "RowOptimizer",
]
