"""A torch optimizer that steps all parameters of a model as its graph's training ops do.

A step, in TensorFlow's order:

1. hyperparameters that are not constants are computed, from feeds and counters
2. the gradients are transformed before they are applied (`transformation`)
3. each parameter is stepped by the optimizer of its own training op
4. the counters advance: the global step, Adam's powers of beta1 and beta2

A parameter without a gradient is stepped with zeros, since TensorFlow trains all variables at every
step.
"""

from __future__ import annotations

import copy
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

import torch

from migrate.graph.changes import Counter
from migrate.graph.metagraph import Edge
from migrate.model.training.formulas import Formula
from migrate.model.training.partitions import Slice
from migrate.model.training.rules import Rule, number
from migrate.model.training.targets import Target
from migrate.model.training.transformation import Transformation
from migrate.optimizers.adam import POWERS
from migrate.runtime.tables.by_id import Room
from migrate.torchrec import optimizers
from semisync.common.errors import UsageError


class GraphOptimizer(torch.optim.Optimizer):
    """One optimizer for all parameters, each under its own rule.

    feeds     {placeholder: value}, of hyperparameters that the graph is fed; may be changed between
              steps
    counters  {variable node: tensor}, the global step among them
    names     {variable node: name in the checkpoint} of the counters
    slots     by parameter: {torch's name of a slot: name in the checkpoint}
    begun     the state that the checkpoint lacks, which started over, see `begin_anew`: {name in
              the checkpoint: its variable nodes}
    left_out  variables that a step of the graph changes, but this one does not
    sources   the formulas' Python, by the name of their result
    rules     by the parameter's attribute: the optimizer that steps it

    `param_groups` have the entries that torch's schedulers and loggers expect; hyperparameters that
    the graph computes are written into them by each step.
    """

    def __init__(
        self,
        targets: Sequence[Target],
        rules: Mapping[str, Rule],
        rates: Formula,
        transformation: Transformation,
        counters: Mapping[str, Counter],
        values: Mapping[str, torch.Tensor],
        feeds: Mapping[str, Any],
        left_out: Sequence[str],
        names: Mapping[str, str],
        slots: Mapping[str, Mapping[str, str]],
        begun: Mapping[str, Sequence[str]],
    ) -> None:
        self.names, self.slots = dict(names), dict(slots)
        self.targets, self.feeds, self.left_out = list(targets), dict(feeds), list(left_out)
        self.rules, self.begun = dict(rules), dict(begun)
        self._rates, self._transformation = rates, transformation
        self._counters, self._values = dict(counters), dict(values)
        self._parts: List[optimizers.RowOptimizer] = []
        self._rules: List[Rule] = []
        self._targets_of: List[List[Target]] = []
        self._room = Room()
        now = self._computed()
        for rule in dict.fromkeys(rules[target.attribute] for target in targets):
            own = [target for target in targets if rules[target.attribute] == rule]
            self._targets_of.append(own)
            arguments = rule.arguments(now)
            powers = {name: arguments.pop(name) for name in POWERS if name in arguments}
            part = getattr(optimizers, rule.kind)([target.tensor for target in own], **arguments)
            # The powers change with each step: they are entries of the group, not arguments of the
            # class.
            part.param_groups[0].update(powers)
            part.param_groups[0]["optimizer"] = rule.kind
            self._parts.append(part)
            self._rules.append(rule)
        super().__init__([part.param_groups[0] for part in self._parts], {})
        self._share()

    def _share(self) -> None:
        """Gives the parts this optimizer's groups and state; load_state_dict makes new ones."""
        for part, group in zip(self._parts, self.param_groups):
            part.param_groups, part.state = [group], self.state

    @property
    def sources(self) -> Dict[str, str]:
        """The Python source of the inputs that the graph computes for its training ops."""
        modules = {"rates": self._rates.module, "gradients": self._transformation.formula.module}
        return {name: module.source for name, module in modules.items() if module is not None}

    @property
    def transforms(self) -> bool:
        """Whether the graph changes gradients before it applies them."""
        return self._transformation.formula.module is not None

    def named_slots(self) -> Dict[Tuple[str, str], Any]:
        """By the parameter's attribute and the slot's name in torch: the tensors themselves."""
        return {
            (target.attribute, slot): self.state[target.tensor][slot]
            for target in self.targets
            for slot in self.slots[target.attribute]
        }

    @property
    def counters(self) -> Dict[str, torch.Tensor]:
        """By the variable's node."""
        return dict(self._values)

    @torch.no_grad()
    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """One step; raises UsageError if there are no gradients."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self.step_by({})
        return loss

    @torch.no_grad()
    def step_by(self, given: Mapping[str, Slice]) -> None:
        """Takes one step with gradients given, by variable node, instead of the module's own.

        Args:
            given: as tf.gradients returns them; for each parameter all parts or none.
        """
        gradients = self._gradients()
        self.give_new_rows_slots()
        now = self._computed()
        for rule, group in zip(self._rules, self.param_groups):
            group.update((name, number(now[edge])) for name, edge in rule.edges)
        applied = self._transformation(gradients, self.feeds, given)
        for part, targets in zip(self._parts, self._targets_of):
            pairs = [(target.tensor, applied[target.attribute]) for target in targets]
            part.step_parameters(pairs, part.param_groups[0])
        self._advance(now)
        self._transformation.clear()

    def give_new_rows_slots(self) -> None:
        """Makes slots for the ids that tables by raw id have added since the last step."""
        for target in self.targets:
            for name, value in target.begins.items():
                slot, key = self.state[target.tensor][name], (target.attribute, name)
                if len(slot) != len(target.tensor):
                    grown = self._room.resized(key, slot, len(target.tensor))
                    grown[len(slot) :] = torch.as_tensor(value).to(slot)
                    self.state[target.tensor][name] = grown

    def zero_grad(self, set_to_none: bool = True) -> None:
        """As in torch.optim.Optimizer."""
        super().zero_grad(set_to_none)
        self._transformation.clear()

    def state_dict(self) -> Dict[str, Any]:
        """torch's state_dict, with the counters."""
        for target in self.targets:
            slots = self.state[target.tensor]
            for name in target.begins:
                slots[name] = self._room.without((target.attribute, name), slots[name])
        return {**super().state_dict(), "counters": {k: v.clone() for k, v in self._values.items()}}

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """Loads the result of `state_dict`; it is copied."""
        given = copy.deepcopy(state_dict)
        counters = given.pop("counters")
        if set(counters) != set(self._values):
            raise UsageError(
                f"the state has the counters {sorted(counters)}, expected {sorted(self._values)}: "
                "it is another model's"
            )
        super().load_state_dict(given)
        self._share()
        for name, value in counters.items():
            self._values[name].copy_(value)

    def _computed(self) -> Dict[Edge, Any]:
        """The values of the hyperparameters, and of the counters' changes, by tensor."""
        inputs = {name: torch.as_tensor(value) for name, value in self.feeds.items()}
        return {**self._rates.constants, **self._rates(inputs)}

    def _gradients(self) -> Dict[str, torch.Tensor]:
        if all(target.tensor.grad is None for target in self.targets):
            raise UsageError("no parameter has a gradient: call loss.backward() before step()")
        by_look_up = self.transforms
        return {target.attribute: gradient_of(target, by_look_up) for target in self.targets}

    def _advance(self, now: Mapping[Edge, Any]) -> None:
        changes: List[Tuple[torch.Tensor, torch.Tensor]] = []
        for name, counter in self._counters.items():
            value = self._values[name]
            change = now[counter.edge]
            if not isinstance(
                change, torch.Tensor
            ):  # a constant of the graph, which must not be written
                change = torch.tensor(change)
            change = change.to(value.dtype)
            if counter.how != "assign":
                change = value + change if counter.how == "add" else value - change
            changes.append((value, change))
        # Only once all are computed: a change may be the value of another counter.
        for value, change in changes:
            value.copy_(change)


def gradient_of(target: Target, by_look_up: bool = False) -> torch.Tensor:
    """The gradient of a parameter: zeros if it has none, and sparse for a table.

    Args:
        by_look_up: the transformation reads the rows of each look-up.

    Raises:
        UsageError: the rows that a batch looked up matter, but the gradient does not have them.
    """
    gradient = target.tensor.grad
    if gradient is None:
        if not target.sparse:
            return torch.zeros_like(target.tensor)
        rows = torch.empty((1, 0), dtype=torch.int64, device=target.tensor.device)
        values = target.tensor.new_empty((0, *target.tensor.shape[1:]))
        # torch warns unless the check of indices is explicitly on or off; here it would only cost.
        return torch.sparse_coo_tensor(rows, values, target.tensor.shape, check_invariants=False)
    if target.sparse and not gradient.is_sparse:
        moves = "the graph changes the gradients of these"
        if not by_look_up:
            moves = f"{target.optimizer.name} moves these even where their gradient is 0"
        if by_look_up or not target.optimizer.moves_absent_as_zeros:
            raise UsageError(
                f"the gradient of the table {target.name!r} is dense, so that it does not tell "
                f"which rows the batch looked up, and {moves}; the model must use the table by "
                "look-ups only, and not join it with other rows first, as tf.concat does with a "
                "row of zeros"
            )
        return gradient.to_sparse(1)
    return gradient
