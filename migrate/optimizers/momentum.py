"""Momentum: a = mu a + g; w -= lr a, or with Nesterov w -= lr (g + mu a)."""

from __future__ import annotations

from migrate.optimizers.record import Counterpart, Op, Optimizer, Slot

MOMENTUM = Optimizer(
    name="Momentum",
    slots=(
        Slot(
            name="momentum",
            torch="momentum_buffer",
            input="accum",
            aliases=("momentum_momentum", "momentum_n"),  # the latter is Monolith's
        ),
    ),
    ops=(Op("ApplyMomentum", "var accum lr grad momentum"),),
    hyperparameters={"lr": "learning_rate", "momentum": "momentum"},
    flags={"use_nesterov": "nesterov"},
    counterpart=Counterpart(
        path="migrate.torchrec.optimizers.Momentum",
        arguments={"learning_rate": "lr", "momentum": "momentum", "nesterov": "nesterov"},
    ),
    note="Momentum: dense variables continue in torch.optim.SGD(momentum, dampening=0); in tables "
    "only touched rows decay and move, where SGD moves all: "
    "migrate.torchrec.optimizers.Momentum(rows='touched') does as TensorFlow; FBGEMM has none",
)
