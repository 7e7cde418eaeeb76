"""The contents of a training's checkpoint: every tensor by a name that does not depend on how many
processes there are, and the state besides tensors.

    model.KEY               the module's state
    optim.PARAMETER.SLOT    the optimizer's
    counter.NODE            the graph's counters, the global step among them
    random.RANK             the state of torch's generator of each process
    random.RANK.cuda        and of its GPU's
    metrics.DAY.PART        the counts of all processes (migrate.training.metrics)

Tables by raw ids (migrate.id_tables) have folders of their own.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Tuple

import torch
from torch.nn.parallel import DistributedDataParallel
from torchrec.distributed.model_parallel import get_unwrapped_module

from migrate.id_tables.embeddings import tables_of
from migrate.model.training.graph_optimizer import GraphOptimizer
from migrate.runtime.tables.by_id import TableById
from migrate.training.checkpoints import Checkpoints
from migrate.training.distributed import by_id, devices
from migrate.training.distributed.processes import rank
from migrate.training.metrics import Metrics
from migrate.training.task import Task
from semisync.common.errors import UsageError

_PARTS = ("bins", "rows", "loss")  # int64


def save(
    checkpoints: Checkpoints, step: int, task: Task, metrics: Metrics, state: Mapping[str, Any]
) -> None:
    """Begins to write a checkpoint, with `state` that is no tensor; all processes call it."""
    tensors = _of_task(task)
    tensors.update(by_id.whole(task.module, task.optimizer, tensors))
    tensors.update(_random(task))
    for day, counts in metrics.gathered().state().items():
        for part in _PARTS:
            tensors[f"metrics.{day}.{part}"] = torch.tensor(counts[part], dtype=torch.int64)
    groups = [_groups(one) for one in optimizers_of(task)]
    settings = {"groups": groups[0], "groups of tables": groups[1:]}
    checkpoints.save(step, tensors, {**state, **settings}, tables_of(_module(task)))


def load(checkpoints: Checkpoints, step: int, task: Task) -> Tuple[Metrics, Dict[str, Any]]:
    """Restores the task in place; returns the metrics, of rank 0 all and of the others none, and
    the state besides tensors.

    Raises:
        UsageError: the checkpoint is another model's.
        BadInput: it is damaged.
    """
    sizes = checkpoints.sizes(step)
    _prepare(task, sizes)
    tensors = _of_task(task)
    _check(checkpoints.path(step), tensors, sizes)
    # Those that are there: as many processes, on as many GPUs.
    own = {name: value for name, value in _random(task).items() if name in sizes}
    tensors.update(own)
    counted = {
        name: torch.empty(size, dtype=torch.int64)
        for name, size in sizes.items()
        if name.startswith("metrics.")
    }
    checkpoints.load(step, {**tensors, **counted}, tables_of(_module(task)))
    by_id.keep_own(task.module, task.optimizer)
    for name, value in own.items():
        set_state = torch.cuda.set_rng_state if name.endswith(".cuda") else torch.set_rng_state
        set_state(value)
    state = checkpoints.state(step)
    every = [state.pop("groups"), *state.pop("groups of tables", [])]
    for optimizer, groups in zip(optimizers_of(task), every):
        _set_groups(optimizer, groups)
    return _metrics(counted), state


def load_model(checkpoints: Checkpoints, step: int, module: torch.nn.Module) -> None:
    """Restores a module alone, in place; errors as of `load`."""
    tensors = _of_module(module)
    _check(checkpoints.path(step), tensors, checkpoints.sizes(step))
    checkpoints.load(step, tensors, tables_of(module))


def _module(task: Task) -> torch.nn.Module:
    """The task's, of a name that does not depend on how many processes there are."""
    module = task.module
    return module.module if isinstance(module, DistributedDataParallel) else module


def _of_module(module: torch.nn.Module) -> Dict[str, Any]:
    """The tensors of its state dict, which has the rows of tables by raw ids too."""
    rows = {f"{path}._extra_state".lstrip(".") for path in tables_of(module)}
    state = module.state_dict()
    return {f"model.{key}": value for key, value in state.items() if key not in rows}


def optimizers_of(task: Task) -> List[Any]:
    """The optimizers of a step: the task's own, and those of its tables by raw ids."""
    of_tables = [one for tables in tables_of(task.module).values() for one in tables.optimizers]
    return [task.optimizer, *(one for one in of_tables if one is not task.optimizer)]


def _random(task: Task) -> Dict[str, torch.Tensor]:
    found = {f"random.{rank()}": torch.get_rng_state()}
    if devices.of(task.module).type == "cuda":
        found[f"random.{rank()}.cuda"] = torch.cuda.get_rng_state()
    return found


def _metrics(counted: Mapping[str, torch.Tensor]) -> Metrics:
    days: Dict[str, Dict[str, Any]] = {}
    for name, value in counted.items():
        # From the right, since a day may contain a dot.
        day, part = name[len("metrics.") :].rsplit(".", 1)
        days.setdefault(day, {})[part] = value.item() if part == "loss" else value.numpy()
    return Metrics.of([days] if rank() == 0 else [])


def _of_task(task: Task) -> Dict[str, Any]:
    """The tensors themselves, whole or sharded; of tables by raw id this process's part."""
    optimizer = task.optimizer
    tensors = _of_module(_module(task))
    if hasattr(optimizer, "named_slots"):
        for (attribute, slot), value in optimizer.named_slots().items():
            tensors[f"optim.{attribute}.{slot}"] = value
        counters = getattr(optimizer, "counters", {})
        tensors.update((f"counter.{node}", value) for node, value in counters.items())
        return tensors
    for name, parameter in _module(task).named_parameters():
        for slot, value in optimizer.state.get(parameter, {}).items():
            tensors[f"optim.{name}.{slot}"] = value
    return tensors


def _prepare(task: Task, sizes: Mapping[str, torch.Size]) -> None:
    """Makes the slots of an optimizer's first step, and the rows that tables by raw id added."""
    if isinstance(task.optimizer, GraphOptimizer):
        for name, module in get_unwrapped_module(task.module).named_modules():
            if isinstance(module, TableById) and f"model.{name}.ids" in sizes:
                module.make_room(sizes[f"model.{name}.ids"][0])
        task.optimizer.give_new_rows_slots()
    if hasattr(task.optimizer, "named_slots"):
        return
    for name, parameter in _module(task).named_parameters():
        start = f"optim.{name}."
        for key in sizes:
            # With a further dot it is the slot of a parameter whose name begins with this one's.
            if key.startswith(start) and "." not in key[len(start) :]:
                where = parameter.device if sizes[key] == parameter.shape else "cpu"  # the step
                value = torch.empty(sizes[key], dtype=torch.float32, device=where)
                task.optimizer.state[parameter][key[len(start) :]] = value


def _check(path: str, tensors: Mapping[str, Any], sizes: Mapping[str, torch.Size]) -> None:
    for name, tensor in tensors.items():
        if name not in sizes:
            raise UsageError(f"{path} has no {name!r}; it is a checkpoint of another model")
        if torch.Size(tensor.size()) != sizes[name]:
            raise UsageError(
                f"{path}: {name!r} is {list(sizes[name])}, and {list(tensor.size())} in the model; "
                "it is a checkpoint of another model"
            )


def _groups(optimizer: Any) -> List[Dict[str, Any]]:
    """The settings of torch.optim's groups, which schedulers change; a graph computes its own."""
    if isinstance(optimizer, GraphOptimizer):
        return []
    return [{k: v for k, v in group.items() if k != "params"} for group in optimizer.param_groups]


def _set_groups(optimizer: Any, groups: List[Dict[str, Any]]) -> None:
    if not isinstance(optimizer, GraphOptimizer):
        for group, settings in zip(optimizer.param_groups, groups):
            group.update(settings)
