"""An optimizer's record: TensorFlow's names and values, and the torch counterpart.

1. `Optimizer` is the record. Each optimizer has its record in the module of its name, and
   `migrate.optimizers.registry` lists them.
2. `Slot` is one slot: its names in TensorFlow, torch, FBGEMM and hash tables, and the value that
   it begins with.
3. `Counterpart` is the torch optimizer that computes the same.
4. `Composed` is an update that TensorFlow builds of several ops, as patterns for the tensors in
   it (`graph_rewrite.patterns.language`). They bind the hyperparameters by their names, "slot 0",
   "slot 1", "variable", "grad" and "1 - beta1".

Records are data: they import no other part of migrate, and name torch's classes by dotted paths.
Source: tensorflow/core/ops/training_ops.cc and python/training/*.py of 1.15 and 2.21, against
which the tests check names, inputs and initial values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Collection, Dict, Mapping, NamedTuple, Optional, Tuple

from graph_rewrite.patterns.engine import Pattern


class Slot(NamedTuple):
    """One slot of a variable.

    Attributes:
        name: TensorFlow's, as in Optimizer.get_slot(variable, name).
        torch: torch.optim's name of it; TensorFlow's where torch lacks the optimizer.
        input: of the training op; None: the slot's own name.
        fused: FBGEMM's name of it in fused optimizers; None: torch's.
        initial: its initial value by TensorFlow's defaults.
        setting: the argument of TensorFlow's optimizer that sets `initial`; such slots only grow.
        second_moment: whether the update is divided by its root.
        aliases: names of it in hash tables, in lower case, besides TFRA's <Optimizer>_<slot>.
    """

    name: str
    torch: str
    input: Optional[str] = None
    fused: Optional[str] = None
    initial: float = 0.0
    setting: Optional[str] = None
    second_moment: bool = False
    aliases: Tuple[str, ...] = ()


class Op(NamedTuple):
    """A training op.

    Attributes:
        name: without "Resource" and "Sparse".
        inputs: names of its inputs, as the op defines them; a sparse op has "indices" after "grad".
        sparse: whether there is a sparse one.
    """

    name: str
    inputs: str
    sparse: bool = True


class Composed(NamedTuple):
    """An update by several ops.

    Attributes:
        step: pattern of the value subtracted from the variable.
        decays: the hyperparameter by which each slot is multiplied before the gradient is added.
        rows: whether only the rows of the batch move.
        added: pattern of the value written to rows of slot 0: "grad" in it is the gradient, unless
            that is in `step`.
    """

    step: Pattern
    decays: Tuple[str, ...]
    rows: bool
    added: Pattern


class StepCount(NamedTuple):
    """The place in a checkpoint of the number t of updates, for the bias correction.

    Attributes:
        decay: the hyperparameter b of which b^(t+1) is kept.
        scalar: name of the scalar with that power, shared by all variables; None: each has its own.
        slot: number of the variable's own slot with that power.
    """

    decay: str
    scalar: Optional[str] = None
    slot: Optional[int] = None


@dataclass(frozen=True)
class Counterpart:
    """The torch optimizer with the same formula as TensorFlow's.

    Attributes:
        path: its class, dotted.
        arguments: TensorFlow's name of a hyperparameter -> the class's argument.
        always: arguments that are given unless a hyperparameter gives them.
        only: hyperparameter -> the one value for which it computes the same; an unknown value is
            taken to be that one.
        for_slot: torch's name of a slot -> the argument that is True where the variable has the
            slot.
        fused: whether TorchRec's fused kernels compute the same.
        row_wise: class that approximates it with one accumulator per row.
        dynamicemb: NVIDIA's dynamicemb's name of the optimizer with the same state.
    """

    path: str
    arguments: Mapping[str, str]
    always: Mapping[str, Any] = field(default_factory=dict)
    only: Mapping[str, float] = field(default_factory=dict)
    for_slot: Mapping[str, str] = field(default_factory=dict)
    fused: bool = False
    row_wise: Optional[str] = None
    dynamicemb: Optional[str] = None


@dataclass(frozen=True)
class Optimizer:
    """All that this project knows of one optimizer.

    Attributes:
        name: TensorFlow's default `name=`, by which slots are named; "LazyAdam" for the one whose
            slots are named as Adam's.
        slots: in the order that their names count.
        ops: training ops.
        hyperparameters: input of the ops -> TensorFlow's name of the hyperparameter.
        note: for a reader of converted state; a conversion's manifest has it.
        named_as: whose name slots have, where not its own.
        longer: its slots where an option adds some (centered RMSProp).
        flags: attribute of the ops -> the hyperparameter that it sets to 1.
        fixed: hyperparameters that the ops do not take -> the value that their formula implies.
        composed: its update of a table, where several ops make it.
        still_at_zero: whether a value whose gradient is 0 stays as it is, and its slots.
        counterpart: the torch optimizer that continues it; None: none does.
        steps: where its step is found; None: it counts none.
        keras_epsilon: epsilon's default in Keras's optimizer with the same slots and update, of
            which object-based checkpoints keep no other trace; None: there is none.
        epsilon_under_root: whether epsilon is added to the second moment before its root is taken.
        row_wise_note: the effect of the row-wise approximation on the tables "{}".
        setting_notes: hyperparameter -> the effect of setting it on the table "{}".
    """

    name: str
    slots: Tuple[Slot, ...]
    ops: Tuple[Op, ...]
    hyperparameters: Mapping[str, str]
    note: str
    named_as: Optional[str] = None
    longer: Tuple[Slot, ...] = ()
    flags: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, float] = field(default_factory=dict)
    composed: Optional[Composed] = None
    still_at_zero: bool = False
    counterpart: Optional[Counterpart] = None
    steps: Optional[StepCount] = None
    keras_epsilon: Optional[float] = None
    epsilon_under_root: bool = False
    row_wise_note: Optional[str] = None
    setting_notes: Mapping[str, str] = field(default_factory=dict)

    @property
    def leaf(self) -> str:
        """The last part of its slots' default names."""
        return self.named_as or self.name

    @property
    def all_slots(self) -> Tuple[Slot, ...]:
        """Every slot that a variable may have; the initial values hold for fewer slots, too."""
        return self.longer or self.slots

    @property
    def moves_absent_as_zeros(self) -> bool:
        """Whether a row of a table that a batch lacks is stepped as one whose gradient is 0."""
        return self.still_at_zero or (self.composed is not None and not self.composed.rows)

    def slots_for(self, numbers: Collection[int]) -> Tuple[Slot, ...]:
        """The slots of a variable that has the slots with these numbers."""
        more = any(number >= len(self.slots) for number in numbers)
        return self.all_slots if more else self.slots

    def initial_state(
        self, settings: Mapping[str, Any], all_slots: bool = False
    ) -> Dict[str, float]:
        """Torch's name of each slot -> TensorFlow's initial value, given its settings."""
        slots = self.all_slots if all_slots else self.slots
        return {slot.torch: settings.get(slot.setting or "", slot.initial) for slot in slots}

    def continued_by(self, hyperparameters: Mapping[str, float]) -> Optional[Counterpart]:
        """Its counterpart, where that computes the same with `hyperparameters`."""
        counterpart = self.counterpart
        if counterpart is None:
            return None
        same = all(
            hyperparameters.get(name, value) == value for name, value in counterpart.only.items()
        )
        return counterpart if same else None

    def arguments_for(
        self, hyperparameters: Mapping[str, float], slots: Collection[str]
    ) -> Dict[str, Any]:
        """Arguments of the counterpart's class, for the slots, in torch's names, that exist."""
        counterpart = self.counterpart
        if counterpart is None:
            return {}
        arguments = dict(counterpart.always)
        for name, argument in counterpart.arguments.items():
            if name in hyperparameters:
                value = hyperparameters[name]
                arguments[argument] = bool(value) if name in self.flags.values() else value
        for slot, argument in counterpart.for_slot.items():
            if slot in slots:
                arguments[argument] = True
        return arguments

    @property
    def second_moment(self) -> Optional[int]:
        """Number of the slot by whose root the update is divided."""
        return next((k for k, slot in enumerate(self.slots) if slot.second_moment), None)
