"""AdamWeightDecay, BERT's optimizer: Adam without a bias correction, and weight decay beside it.

    m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2
    w -= lr (m / (sqrt(v) + eps) + weight_decay w)

It is written in TensorFlow's arithmetic and assigned, Assign(w, w - ...), Assign(m, ...) and
Assign(v, ...). Biases and LayerNorms have no decay. A table's gradient is dense, so that every row
moves. Slots are called adam_m and adam_v.
Source: optimization.py of google-research/bert, which BERT4Rec and others have copied.
"""

from __future__ import annotations

from migrate.optimizers.record import Composed, Counterpart, Optimizer, Slot

_M = ("Add", ("Mul", "beta1", "slot 0"), ("Mul", "1 - beta1", "grad"))
_V = ("Add", ("Mul", "beta2", "slot 1"), ("Mul", "1 - beta2", ("Square", "grad")))
_UPDATE = ("RealDiv", _M, ("Add", ("Sqrt", _V), "epsilon"))
_DECAYED = ("Add", _UPDATE, ("Mul", "weight_decay", "variable"))

ADAM_WEIGHT_DECAY = Optimizer(
    name="AdamWeightDecay",
    slots=(
        Slot(name="adam_m", torch="exp_avg"),
        Slot(name="adam_v", torch="exp_avg_sq", second_moment=True),
    ),
    ops=(),
    hyperparameters={
        name: name for name in ("learning_rate", "beta1", "beta2", "epsilon", "weight_decay")
    },
    fixed={"weight_decay": 0.0},
    composed=Composed(
        step=("Mul", "learning_rate", ("either", _DECAYED, _UPDATE)),
        decays=(),
        rows=False,
        added="any",
    ),
    counterpart=Counterpart(
        path="migrate.torchrec.optimizers.AdamWeightDecay",
        arguments={
            "learning_rate": "lr",
            "beta1": "beta1",
            "beta2": "beta2",
            "epsilon": "eps",
            "weight_decay": "weight_decay",
        },
    ),
    note="AdamWeightDecay: BERT's Adam has no bias correction, which torch.optim.AdamW has, and "
    "moves every row of a table; migrate.torchrec.optimizers.AdamWeightDecay does as TensorFlow",
)
