"""All optimizers by name, and look-ups over all records.

To add an optimizer, write its record in a module of its own and list it in `_RECORDS`. Optimizers
without slots leave no trace in a checkpoint, and are listed in `SLOTLESS_OPS` alone.
"""

from __future__ import annotations

from typing import Collection, Dict, FrozenSet, NamedTuple, Optional, Tuple

from migrate.optimizers.adadelta import ADADELTA
from migrate.optimizers.adagrad import ADAGRAD
from migrate.optimizers.adagrad_da import ADAGRAD_DA
from migrate.optimizers.adam import ADAM, ADAM_ASYNC, LAZY_ADAM
from migrate.optimizers.adam_weight_decay import ADAM_WEIGHT_DECAY
from migrate.optimizers.adamax import ADAMAX
from migrate.optimizers.ftrl import FTRL
from migrate.optimizers.gradient_descent import GRADIENT_DESCENT, PROXIMAL_GRADIENT_DESCENT
from migrate.optimizers.momentum import MOMENTUM
from migrate.optimizers.proximal_adagrad import PROXIMAL_ADAGRAD
from migrate.optimizers.record import Op, Optimizer, Slot
from migrate.optimizers.rmsprop import RMSPROP

_RECORDS = (
    ADADELTA,
    ADAGRAD,
    ADAGRAD_DA,
    ADAM,
    ADAM_ASYNC,
    ADAM_WEIGHT_DECAY,
    ADAMAX,
    FTRL,
    LAZY_ADAM,
    MOMENTUM,
    PROXIMAL_ADAGRAD,
    RMSPROP,
)

OPTIMIZERS: Dict[str, Optimizer] = {record.name: record for record in _RECORDS}

# The last part of a slot's name by default.
LEAVES: Tuple[str, ...] = tuple(record.name for record in _RECORDS if record.leaf == record.name)


class TrainingOp(NamedTuple):
    """An op that updates a variable.

    Attributes:
        slots: numbers of its inputs that are slots, in the order that their names count.
        hyperparameters: TensorFlow's name of each -> number of its input.
        inputs: names of all inputs, as the op defines them, "indices" of a sparse one too.
    """

    optimizer: Optimizer
    slots: Tuple[int, ...]
    hyperparameters: Dict[str, int]
    inputs: Tuple[str, ...]


def _training_op(optimizer: Optimizer, op: Op, sparse: bool) -> TrainingOp:
    inputs = op.inputs.split()
    if sparse:
        inputs.insert(inputs.index("grad") + 1, "indices")

    def numbers(slots: Tuple[Slot, ...]) -> Tuple[int, ...]:
        return tuple(inputs.index(slot.input or slot.name) for slot in slots)

    # An op with inputs for all slots is that of the longer form, as centered RMSProp's.
    every = all((slot.input or slot.name) in inputs for slot in optimizer.all_slots)
    return TrainingOp(
        optimizer,
        slots=numbers(optimizer.all_slots if every else optimizer.slots),
        hyperparameters={
            name: inputs.index(given)
            for given, name in optimizer.hyperparameters.items()
            if given in inputs
        },
        inputs=tuple(inputs),
    )


def _training_ops(records: Tuple[Optimizer, ...]) -> Dict[str, TrainingOp]:
    """By the op without "Resource"."""
    return {
        "Sparse" * sparse + op.name: _training_op(record, op, sparse)
        for record in records
        for op in record.ops
        for sparse in ((False, True) if op.sparse else (False,))
    }


TRAINING_OPS = _training_ops(_RECORDS)
SLOTLESS_OPS = _training_ops((GRADIENT_DESCENT, PROXIMAL_GRADIENT_DESCENT))

# Names of states that only FBGEMM's fused optimizers have, and torch.optim's names of the same.
FUSED_STATES: Dict[str, str] = {
    slot.fused: slot.torch for record in _RECORDS for slot in record.all_slots if slot.fused
}

# Optimizers whose state NVIDIA's dynamicemb keeps as TensorFlow does.
DYNAMICEMB: Tuple[str, ...] = tuple(
    record.name for record in _RECORDS if record.counterpart and record.counterpart.dynamicemb
)

# Optimizers that torch approximates with one accumulator per row.
ROW_WISE: Tuple[str, ...] = tuple(
    record.name for record in _RECORDS if record.counterpart and record.counterpart.row_wise
)

# The torch classes that continue them, as model.json names them.
CLASSES: FrozenSet[str] = frozenset(
    path
    for record in (*_RECORDS, GRADIENT_DESCENT, PROXIMAL_GRADIENT_DESCENT)
    if record.counterpart is not None
    for path in (record.counterpart.path, record.counterpart.row_wise)
    if path is not None
)

# The argument of a torch class -> TensorFlow's name of the hyperparameter.
HYPERPARAMETERS: Dict[str, str] = {
    argument: name
    for record in _RECORDS
    if record.counterpart is not None
    for name, argument in record.counterpart.arguments.items()
}

_BY_ALIAS: Dict[str, Tuple[str, int]] = {
    alias: (name, k)
    for name in LEAVES
    for k, slot in enumerate(OPTIMIZERS[name].slots)
    for alias in slot.aliases
}


def table_slot(name: str, beside: Collection[str] = ()) -> Optional[Tuple[str, int]]:
    """(optimizer, k) for the slot of a hash table; None where it is not known.

    Args:
        name: `<Optimizer>_<slot>`, as TFRA spells it with TensorFlow's names, or as another
            format does (`Slot.aliases`).
        beside: the table's other slots, of which k may depend.
    """
    start, _, slot = name.partition("_")
    if start in LEAVES:
        record = OPTIMIZERS[start]
        names = {other.partition("_")[2] for other in beside}
        # The k of RMSProp's momentum is 1, or 2 beside the mean of a centered one.
        longer = not names <= {known.name for known in record.slots}
        for k, known in enumerate(record.all_slots if longer else record.slots):
            if known.name == slot:
                return record.name, k
    return _BY_ALIAS.get(name.lower())
