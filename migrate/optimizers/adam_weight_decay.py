"""AdamWeightDecay, BERT's optimizer: Adam without a bias correction, and weight decay beside it.

    m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2
    w -= lr (m / (sqrt(v) + eps) + weight_decay w)

It is written in TensorFlow's arithmetic and assigned, Assign(w, w - ...), Assign(m, ...) and
Assign(v, ...). Biases and LayerNorms have no decay. A table's gradient is dense, so that every row
moves. Slots are called adam_m and adam_v.
Source: optimization.py of google-research/bert, which BERT4Rec and others have copied.
"""

from __future__ import annotations

from graph_rewrite.patterns.alike import alike
from graph_rewrite.patterns.arithmetic import plus, square, times
from graph_rewrite.patterns.language import ANY, either, given, op
from migrate.optimizers.record import Composed, Counterpart, Optimizer, Slot

_M = plus(times("beta1", "slot 0"), times("1 - beta1", "grad of m"))
_V = plus(times("beta2", "slot 1"), times("1 - beta2", square("grad")))
# g occurs in m and in v; both must be the same tensor.
_UPDATE = given(op("RealDiv", _M, plus(op("Sqrt", _V), "epsilon")), alike("grad", "grad of m"))
_DECAYED = plus(_UPDATE, times("weight_decay", "variable"))

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
        step=times("learning_rate", either(_DECAYED, _UPDATE)),
        decays=(),
        rows=False,
        added=ANY,
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
