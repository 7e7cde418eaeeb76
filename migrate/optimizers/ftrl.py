"""FTRL-Proximal: n' = n + g^2; z += g - (sqrt(n') - sqrt(n)) / lr w; w = 0 where |z| <= l1, else
(l1 sgn(z) - z) / (sqrt(n') / lr + 2 l2)."""

from __future__ import annotations

from migrate.optimizers.record import Counterpart, Op, Optimizer, Slot

FTRL = Optimizer(
    name="Ftrl",
    slots=(
        Slot(
            name="accum",
            torch="accum",
            initial=0.1,
            setting="initial_accumulator_value",
            second_moment=True,
            # Keras's name in TFRA; Monolith's, which begins with 0.1, too
            aliases=("ftrl_accum", "ftrl_accumulator", "ftrl_norm"),
        ),
        Slot(name="linear", torch="linear", aliases=("ftrl_linear", "ftrl_zero")),
    ),
    ops=(
        Op("ApplyFtrl", "var accum linear grad lr l1 l2 lr_power"),
        Op("ApplyFtrlV2", "var accum linear grad lr l1 l2 l2_shrinkage lr_power"),
    ),
    hyperparameters={
        "lr": "learning_rate",
        "l1": "l1",
        "l2": "l2",
        "l2_shrinkage": "l2_shrinkage",
        "lr_power": "learning_rate_power",
    },
    counterpart=Counterpart(
        path="migrate.torchrec.optimizers.Ftrl",
        arguments={
            "learning_rate": "lr",
            "l1": "l1",
            "l2": "l2",
            "l2_shrinkage": "l2_shrinkage",
            "learning_rate_power": "lr_power",
        },
    ),
    note="Ftrl: torch and FBGEMM have none; migrate.torchrec.optimizers.Ftrl does as TensorFlow",
)
