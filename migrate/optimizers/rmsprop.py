"""RMSProp: s = d s + (1-d) g^2; a = mu a + lr g / sqrt(s + eps); w -= a.

The centered form also keeps the mean of the gradients, mg = d mg + (1-d) g, and has s - mg^2 in
place of s. Keras's RMSprop, whose mean square begins with 0, is another optimizer.
"""

from __future__ import annotations

from migrate.optimizers.record import Counterpart, Op, Optimizer, Slot

_MEAN_SQUARE = Slot(name="rms", torch="square_avg", input="ms", initial=1.0, second_moment=True)
_MEAN = Slot(name="mg", torch="grad_avg")
_MOMENTUM = Slot(name="momentum", torch="momentum_buffer", input="mom")

RMSPROP = Optimizer(
    name="RMSProp",
    slots=(_MEAN_SQUARE, _MOMENTUM),
    longer=(_MEAN_SQUARE, _MEAN, _MOMENTUM),
    ops=(
        Op("ApplyRMSProp", "var ms mom lr rho momentum epsilon grad"),
        Op("ApplyCenteredRMSProp", "var mg ms mom lr rho momentum epsilon grad"),
    ),
    hyperparameters={
        "lr": "learning_rate",
        "rho": "decay",
        "momentum": "momentum",
        "epsilon": "epsilon",
    },
    epsilon_under_root=True,
    counterpart=Counterpart(
        path="migrate.torchrec.optimizers.RMSProp",
        arguments={
            "learning_rate": "lr",
            "decay": "decay",
            "momentum": "momentum",
            "epsilon": "eps",
        },
        for_slot={"grad_avg": "centered"},
    ),
    note="RMSProp: TensorFlow adds epsilon inside the root and multiplies the learning rate into "
    "the momentum; torch.optim.RMSprop adds it outside and multiplies afterwards, and starts from "
    "0 instead of 1: migrate.torchrec.optimizers.RMSProp does as TensorFlow; FBGEMM has only a "
    "row-wise one",
)
