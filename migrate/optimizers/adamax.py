"""AdaMax: m = b1 m + (1-b1) g; u = max(b2 u, |g|); w -= lr / (1 - b1^t) m / (u + eps)."""

from __future__ import annotations

from migrate.optimizers.record import Op, Optimizer, Slot

ADAMAX = Optimizer(
    name="AdaMax",
    slots=(Slot(name="m", torch="exp_avg"), Slot(name="v", torch="exp_inf")),
    ops=(Op("ApplyAdaMax", "var m v beta1_power lr beta1 beta2 epsilon grad", sparse=False),),
    hyperparameters={
        "lr": "learning_rate",
        "beta1": "beta1",
        "beta2": "beta2",
        "epsilon": "epsilon",
    },
    note="AdaMax: TensorFlow's u = max(beta2 u, |g|), w -= lr / (1 - beta1^t) m / (u + epsilon); "
    "torch.optim.Adamax's u = max(beta2 u, |g| + epsilon), w -= lr / (1 - beta1^t) m / u: they "
    "differ by epsilon, and nothing continues TensorFlow's exactly",
)
