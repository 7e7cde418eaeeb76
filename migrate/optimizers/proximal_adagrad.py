"""ProximalAdagrad: Adagrad, then w is shrunk towards 0 by l1 and l2.

Its accumulator begins with 0.1, as Adagrad's: python/training/proximal_adagrad.py.
"""

from __future__ import annotations

from migrate.optimizers.record import Counterpart, Op, Optimizer, Slot

PROXIMAL_ADAGRAD = Optimizer(
    name="ProximalAdagrad",
    slots=(
        Slot(
            name="accumulator",
            torch="accumulator",
            input="accum",
            initial=0.1,
            setting="initial_accumulator_value",
            second_moment=True,
        ),
    ),
    ops=(Op("ApplyProximalAdagrad", "var accum lr l1 l2 grad"),),
    hyperparameters={"lr": "learning_rate", "l1": "l1", "l2": "l2"},
    counterpart=Counterpart(
        path="migrate.torchrec.optimizers.ProximalAdagrad",
        arguments={"learning_rate": "lr", "l1": "l1", "l2": "l2"},
    ),
    note="ProximalAdagrad: Adagrad, then w = sign(w) max(|w| - lr' l1, 0) / (1 + lr' l2) with "
    "lr' = lr / sqrt(a); without l1 and l2 it is Adagrad; torch and FBGEMM have none; "
    "migrate.torchrec.optimizers.ProximalAdagrad does as TensorFlow",
)
