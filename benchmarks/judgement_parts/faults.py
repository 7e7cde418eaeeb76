"""Faults to plant in torch's side of a right training.

{name: function}: the function plants the fault in a Training. Its result is false, once the steps
are taken, if the fault had no place there.
"""

from typing import Any, Callable, Dict, List

import torch

from migrate.model.training.build import Training


def _changed(training: Training, name: str, change: Callable[[float], float]) -> bool:
    """Changes a hyperparameter wherever an optimizer has it, at every step."""
    optimizer = training.optimizer
    found = False
    for part in optimizer._parts:
        if not part.param_groups[0].get(name):
            continue
        found = True
        right = part.step_parameters

        def step(pairs: Any, group: Any, right: Any = right) -> None:
            right(pairs, {**group, name: change(group[name])})

        part.step_parameters = step
    return found


def _epsilon(training: Training) -> bool:
    """Makes epsilon ten times as large, but not RMSProp's, which is added to mean squares that
    begin at 1 and changes nothing."""
    optimizers = {group["optimizer"] for group in training.optimizer.param_groups}
    return "RMSProp" not in optimizers and _changed(training, "eps", lambda eps: 10 * eps)


def _of(change: Callable[[float], float], *names: str) -> Callable[[Training], bool]:
    """Changes hyperparameters of the optimizer."""

    def plant(training: Training) -> bool:
        found = [_changed(training, name, change) for name in names]
        return any(found)

    return plant


def _of_norms(name: str, change: Callable[[float], float]) -> Callable[[Training], bool]:
    """Changes an attribute of all BatchNorms."""

    def plant(training: Training) -> bool:
        modules = training.module.modules()
        norms = [one for one in modules if type(one).__name__ == "BatchNorm"]
        for norm in norms:
            setattr(norm, name, change(getattr(norm, name)))
        return bool(norms)

    return plant


def _transposed_slot(training: Training) -> bool:
    """Transposes the first slot that this changes: an accumulator may be .1 throughout."""
    optimizer = training.optimizer
    for target in optimizer.targets:
        state = optimizer.state[target.tensor]
        for slot in optimizer.slots[target.attribute]:
            value = state[slot]
            if value.dim() == 2:
                transposed = value.t().reshape(value.shape).clone()
                if (transposed - value).abs().max() > 0.01 * value.abs().max():
                    value.copy_(transposed)
                    return True
    return False


def _gradient_of_one_id(training: Training) -> List[Any]:
    """Makes the gradient of the most frequent id too large by 5e-4; returns [] while all gradients
    are 0, as below a dead tower."""
    chosen: List[Any] = []

    def more_of_one(table: Any) -> None:
        rows, summed = table.grad._indices()[0], table.grad.coalesce()
        sizes = summed.values().norm(dim=1)
        if sizes.max() > 0 and (not chosen or chosen[0] is table):
            chosen[:] = [table]
            most = summed.indices()[0, sizes.argmax()]
            table.grad._values()[rows == most] *= 1.0005

    for target in training.optimizer.targets:
        if target.sparse:
            target.tensor.register_post_accumulate_grad_hook(more_of_one)
    return chosen


def _swapped_columns(training: Training) -> List[bool]:
    """Swaps the first two columns of numbers; returns [] while no loss changes by it, as where a
    tower is dead."""
    changed: List[bool] = []

    def swap(module: Any, given: Any) -> Any:
        (inputs,) = given
        key = next(name for name in inputs if name.split(":")[0] == "x")
        order = [1, 0, *range(2, inputs[key].shape[1])]
        swapped = {**inputs, key: inputs[key][:, order]}
        if not changed and _loss(module, inputs) != _loss(module, swapped):
            changed.append(True)
        return (swapped,)

    training.module.register_forward_pre_hook(swap)
    return changed


@torch.no_grad()
def _loss(module: Any, inputs: Any) -> float:
    """The loss; the moving statistics stay as they are."""
    before = {name: value.clone() for name, value in module.state_dict().items()}
    loss = float(type(module).forward(module, inputs))
    module.load_state_dict(before)
    return loss


FAULTS: Dict[str, Callable[[Training], Any]] = {
    "epsilon": _epsilon,
    "BatchNorm's epsilon": _of_norms("eps", lambda eps: 1.1 * eps),
    "beta1": _of(lambda beta: beta + 1e-3, "beta1"),
    "beta2": _of(lambda beta: beta - 1e-4, "beta2"),
    "decay": _of(lambda decay: decay + 1e-3, "decay", "momentum"),
    "BatchNorm's decay": _of_norms("momentum", lambda decay: decay + 1e-3),
    "learning rate": _of(lambda rate: 1.001 * rate, "lr"),  # as of a decay that is off by 1e-3
    "L1": _of(lambda l1: l1 + 1e-3, "l1"),
    "L2": _of(lambda l2: l2 + 1e-3, "l2"),
    "transposed slot": _transposed_slot,
    "one id's gradient": _gradient_of_one_id,
    "swapped columns": _swapped_columns,
}
