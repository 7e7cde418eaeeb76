"""The optimizers without slots: gradient descent, w -= lr g, and the same with w shrunk towards 0.

ProximalGradientDescent: u = w - lr g; w = sign(u) max(|u| - lr l1, 0) / (1 + lr l2).
On a table GradientDescent is no training op: it is ScatterSub(w, ids, lr g), or for a resource
variable ResourceScatterAdd(w, ids, -g lr). The dense ops call the gradient "delta".
Source: python/training/gradient_descent.py and proximal_gradient_descent.py.
"""

from __future__ import annotations

from migrate.optimizers.record import Counterpart, Op, Optimizer

GRADIENT_DESCENT = Optimizer(
    name="GradientDescent",
    slots=(),
    ops=(Op("ApplyGradientDescent", "var alpha grad", sparse=False),),
    hyperparameters={"alpha": "learning_rate"},
    still_at_zero=True,
    counterpart=Counterpart(
        path="migrate.torchrec.optimizers.GradientDescent", arguments={"learning_rate": "lr"}
    ),
    note="GradientDescent: torch.optim.SGD computes the same",
)

PROXIMAL_GRADIENT_DESCENT = Optimizer(
    name="ProximalGradientDescent",
    slots=(),
    ops=(Op("ApplyProximalGradientDescent", "var alpha l1 l2 grad"),),
    hyperparameters={"alpha": "learning_rate", "l1": "l1", "l2": "l2"},
    counterpart=Counterpart(
        path="migrate.torchrec.optimizers.ProximalGradientDescent",
        arguments={"learning_rate": "lr", "l1": "l1", "l2": "l2"},
    ),
    note="ProximalGradientDescent: torch and FBGEMM have none; "
    "migrate.torchrec.optimizers.ProximalGradientDescent does as TensorFlow",
)
