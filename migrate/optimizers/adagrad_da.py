"""AdagradDA: dual averaging; the sum of gradients begins with 0, that of their squares with 0.1.

The weights follow from the two sums alone: python/training/adagrad_da.py.
"""

from __future__ import annotations

from migrate.optimizers.record import Op, Optimizer, Slot

ADAGRAD_DA = Optimizer(
    name="AdagradDA",
    slots=(
        Slot(name="gradient_accumulator", torch="gradient_accumulator"),
        Slot(
            name="gradient_squared_accumulator",
            torch="gradient_squared_accumulator",
            initial=0.1,
            setting="initial_gradient_squared_accumulator_value",
            second_moment=True,
        ),
    ),
    ops=(
        Op(
            "ApplyAdagradDA",
            "var gradient_accumulator gradient_squared_accumulator grad lr l1 l2 global_step",
        ),
    ),
    hyperparameters={"lr": "learning_rate", "l1": "l1", "l2": "l2"},
    note="AdagradDA: w = -lr sign(G) max(|G| - l1 t, 0) / (l2 lr t + sqrt(A)), with G the sum of "
    "the gradients and A that of their squares; torch and FBGEMM have none, so its slots are "
    "written and nothing loads them",
)
