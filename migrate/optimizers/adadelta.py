"""Adadelta: a = rho a + (1-rho) g^2; u = sqrt(d + eps) / sqrt(a + eps) g; d = rho d + (1-rho) u^2;
w -= lr u."""

from __future__ import annotations

from migrate.optimizers.record import Counterpart, Op, Optimizer, Slot

ADADELTA = Optimizer(
    name="Adadelta",
    slots=(
        Slot(name="accum", torch="square_avg", aliases=("adadelta_accum",)),
        Slot(name="accum_update", torch="acc_delta", aliases=("adadelta_accum_update",)),
    ),
    ops=(Op("ApplyAdadelta", "var accum accum_update lr rho epsilon grad"),),
    hyperparameters={"lr": "learning_rate", "rho": "rho", "epsilon": "epsilon"},
    counterpart=Counterpart(
        path="migrate.torchrec.optimizers.Adadelta",
        arguments={"learning_rate": "lr", "rho": "rho", "epsilon": "eps"},
    ),
    note="Adadelta: on dense variables torch.optim.Adadelta computes the same with rho, epsilon "
    "and learning_rate of TensorFlow (its defaults are others); in tables TensorFlow moves touched "
    "rows alone, torch decays all: migrate.torchrec.optimizers.Adadelta does as TensorFlow",
)
