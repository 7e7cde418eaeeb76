"""A converted model over several processes: TorchRec's DistributedModelParallel for its tables,
DistributedDataParallel for the rest.

1. Every process builds the whole model and reads the whole checkpoint; the planner then gives each
   table to one process, or its rows to all, and a process keeps its part.
2. That is done with the collections whose tables all have optimizers that FBGEMM's fused kernels
   compute as TensorFlow does: Adagrad, gradient descent, or none, and vectors of a multiple of 4
   numbers. They step within the backward pass, and only the rows of the batch. Other collections
   are whole in every process. On CPUs the processes exchange the gradients of the looked-up rows
   before a step, since DistributedDataParallel divides a sparse gradient in place, whose values may
   be a tensor that backward still needs; on GPUs it exchanges these gradients too.
3. Each process has an equal share of the global batch, and gradients are averaged. With a loss that
   is a mean over the batch, the step is that of the whole global batch.
4. BatchNorm takes mean and variance of the global batch.
5. The rows of tables by raw id are divided by their ids (`migrate.training.distributed.by_id`).
6. A graph that changes gradients, such as by clipping their norm, needs those of all tables in one
   place, and is refused.
"""

from __future__ import annotations

import os
from typing import (
    Any,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
)

import torch
import torch.distributed as dist
from torch import nn
from torchrec.distributed import DistributedModelParallel
from torchrec.distributed.embedding import EmbeddingCollectionSharder
from torchrec.distributed.embedding_types import EmbeddingComputeKernel, ShardingType
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.model_parallel import DefaultDataParallelWrapper
from torchrec.distributed.planner import EmbeddingShardingPlanner, ParameterConstraints, Topology
from torchrec.distributed.types import BoundsCheckMode
from torchrec.optim.apply_optimizer_in_backward import apply_optimizer_in_backward
from torchrec.optim.keyed import CombinedOptimizer

from migrate.model.training.graph_optimizer import GraphOptimizer
from migrate.model.training.partitions import Slice
from migrate.model.training.rules import Rule
from migrate.training.distributed.by_id import SharedTable, share, shared
from migrate.training.distributed.norms import over_processes
from migrate.training.embedding_tables import tables_of
from migrate.training.frozen import FrozenTable
from migrate.training.task import Task
from semisync.common.errors import UsageError

_SHARDINGS = [ShardingType.TABLE_WISE.value, ShardingType.ROW_WISE.value]
_FUSED: Dict[
    str, Tuple[Any, Dict[str, str]]
] = {  # in migrate.torchrec.optimizers -> FBGEMM's fused one, and its names of the slots
    "Adagrad": (torch.optim.Adagrad, {"sum": "momentum1"}),
    "GradientDescent": (torch.optim.SGD, {}),
}


_WIDTHS = 4  # a vector has a multiple of so many numbers in FBGEMM's kernels


class Table(NamedTuple):
    """A table of a collection.

    Attributes:
        path: the collection's in the module.
        attribute: the weight's.
        name: in the collection.
        weight: None where it is kept in fewer bits.
        fused: whether its optimizer can be a kernel's.
    """

    path: str
    attribute: str
    name: str
    weight: Optional[nn.Parameter]
    fused: bool


class ShardedOptimizer(GraphOptimizer):
    """A `GraphOptimizer` of parameters not stepped within the backward pass.

    The tables that are get their learning rates from `zero_grad`, which therefore comes before each
    backward pass.
    """

    def __init__(
        self,
        whole: GraphOptimizer,
        parameters: Mapping[str, nn.Parameter],
        fused: Mapping[str, Tuple[Any, Mapping[str, Any]]],
        by_id: Iterable[SharedTable],
        exchanged: Sequence[str],
    ) -> None:
        """Takes the slots of `whole`.

        Args:
            parameters: of the wrapped module.
            fused: by attribute, TorchRec's optimizer that steps the table, and its state.
            by_id: the tables by raw id.
            exchanged: attributes of the tables that are whole in every process, whose gradients
                nothing else exchanges.
        """
        targets = [
            target._replace(tensor=parameters[target.attribute])
            for target in whole.targets
            if target.attribute not in fused
        ]
        # All rules and rates: `zero_grad` needs those of the fused tables too.
        super().__init__(
            targets,
            whole.rules,
            whole._rates,
            whole._transformation,
            whole._counters,
            whole.counters,
            whole.feeds,
            whole.left_out,
            whole.names,
            whole.slots,
            whole.begun,
        )
        self._fused = fused
        self._by_id = list(by_id)
        self._exchanged = exchanged
        for (attribute, slot), value in whole.named_slots().items():
            if attribute not in fused:
                self.state[parameters[attribute]][slot] = value

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Also sets the learning rates of the step that begins."""
        super().zero_grad(set_to_none)
        for table in self._by_id:
            table.forget()
        now = self._computed()
        for attribute, (optimizer, _) in self._fused.items():
            rate = self.rules[attribute].arguments(now)["lr"]
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.zero_grad()  # hands it on to the kernel

    def step_by(self, given: Mapping[str, Slice]) -> None:
        """As a `GraphOptimizer`'s; all processes call it."""
        for table in self._by_id:
            table.collect()
        super().step_by(given)

    def _gradients(self) -> Dict[str, torch.Tensor]:
        found = super()._gradients()
        for attribute in self._exchanged:
            found[attribute] = found[attribute] / dist.get_world_size()
            dist.all_reduce(found[attribute])
        return found

    def named_slots(self) -> Dict[Tuple[str, str], Any]:
        """As a `GraphOptimizer`'s; those of sharded tables are sharded."""
        slots = super().named_slots()
        for attribute, (_, state) in self._fused.items():
            by_name = {name.rpartition(".")[2]: value for name, value in state.items()}
            for slot, name in _FUSED[self.rules[attribute].kind][1].items():
                if name in by_name:  # else this process has no part of the table
                    slots[attribute, slot] = by_name[name]
        return slots


_CPU = torch.device("cpu")


def distribute(task: Task, device: torch.device = _CPU) -> Task:
    """The task over all processes.

    Args:
        task: of one process, on the CPU.
        device: of this process, as `joined` gives it; it computes there.

    Returns:
        A `Task`.

    Raises:
        UsageError: its optimizer is not a `GraphOptimizer`, the graph changes gradients before it
            applies them, a table is looked up otherwise than by collections or by raw id, or by raw
            id on GPUs.

    Examples:
        Within `joined`, in every process of torchrun:

            task = distribute(task)
    """
    module, whole = task.module, task.optimizer
    if not isinstance(whole, GraphOptimizer):
        raise UsageError(
            f"the optimizer is {type(whole).__name__}; a model of your own trains in one process"
        )
    if whole.transforms:
        raise UsageError(
            "the graph changes gradients before it applies them, such as by clipping, for which "
            "all of them are needed in one place; train in one process"
        )
    trained = {target.attribute for target in whole.targets}
    for name, parameter in module.named_parameters():
        parameter.requires_grad_(name in trained)
    tables = list(_tables(module, whole.rules))
    by_id = share(module, whole)
    shared_out = {*(table.attribute for table in tables), *by_id}
    for target in whole.targets:
        if target.sparse and target.attribute not in shared_out:
            raise UsageError(
                f"the table {target.name!r} is used outside of TorchRec's collections, and cannot "
                "be divided; train in one process"
            )
    if by_id and device.type != "cpu":
        raise UsageError(
            f"the table {by_id[0]!r} is found by raw id, in the memory of the CPU; several "
            "processes train it with --device cpu"
        )
    over_processes(module)
    # Taken before sharding, which lays tables out anew.
    values = {name: value.detach() for name, value in module.state_dict().items()}
    whole_collections = {table.path for table in tables if not table.fused}
    sharded = [table for table in tables if table.path not in whole_collections]
    for number, table in enumerate(sharded):
        _fuse(table, whole.rules.get(table.attribute), number)
    exchanged = [
        table.attribute
        for table in tables
        if table.path in whole_collections and table.attribute in trained and device == _CPU
    ]
    model = wrapped(module, sharded, [*by_id, *exchanged], device)
    fill(model.state_dict(), values)
    optimizer = _optimizer(model, whole, exchanged)
    fill(optimizer.named_slots(), whole.named_slots())
    return Task(model, optimizer)


def _tables(module: nn.Module, rules: Mapping[str, Rule]) -> Iterator[Table]:
    for path, name, members, attribute in tables_of(module):
        member: Any = members[name]
        if isinstance(member, FrozenTable):
            yield Table(path, attribute, name, None, False)
            continue
        known = attribute not in rules or rules[attribute].kind in _FUSED
        fused = known and member.weight.dtype == torch.float32
        fused = fused and member.weight.shape[1] % _WIDTHS == 0
        yield Table(path, attribute, name, member.weight, fused)


def _fuse(table: Table, rule: Optional[Rule], number: int) -> None:
    """Gives a table's optimizer to the backward pass.

    Each begins with a learning rate of its own, so that TorchRec does not make one optimizer of
    several tables whose rates differ later.
    """
    assert table.weight is not None
    if rule is None:  # frozen; fused kernels step all tables
        table.weight.requires_grad_(True)
        apply_optimizer_in_backward(torch.optim.SGD, [table.weight], {"lr": 0.0})
        return
    class_, _ = _FUSED[rule.kind]
    settings = {name: value for name, value in rule.settings if name == "eps"}
    apply_optimizer_in_backward(class_, [table.weight], {"lr": 1.0 + number, **settings})


def wrapped(
    module: nn.Module,
    tables: List[Table],
    apart: Sequence[str] = (),
    device: torch.device = _CPU,
) -> DistributedModelParallel:
    """`tables` dealt out among the processes, of their collections' module; see `distribute`.
    apart: parameters whose gradients DistributedDataParallel leaves alone."""
    paths = {table.path for table in tables}
    sharders: List[Any] = [_Bags(paths, module), _Sequences(paths, module)]
    size = dist.get_world_size()
    constraints = {
        table.name: ParameterConstraints(
            sharding_types=_SHARDINGS,
            compute_kernels=[EmbeddingComputeKernel.FUSED.value],
            bounds_check_mode=BoundsCheckMode.FATAL,  # an id beyond the table is an error, not 0
        )
        for table in tables
    }
    local = int(os.environ.get("LOCAL_WORLD_SIZE", size))  # of this machine
    topology = Topology(
        world_size=size,
        local_world_size=local,
        compute_device=device.type,
        # All of the GPU's memory; TorchRec's planner assumes 32 GiB otherwise.
        hbm_cap=torch.cuda.mem_get_info(device)[1] if device.type == "cuda" else None,
    )
    planner = EmbeddingShardingPlanner(topology=topology, constraints=constraints)
    plan = planner.collective_plan(module, sharders, dist.group.WORLD)
    return DistributedModelParallel(
        module,
        device=device,
        plan=plan,
        sharders=sharders,
        data_parallel_wrapper=DefaultDataParallelWrapper(
            static_graph=False, find_unused_parameters=True, params_to_ignore=list(apart)
        ),
    )


class _Some:
    """A sharder of those collections of a module whose paths are given."""

    def __init__(self, paths: Any, module: nn.Module) -> None:
        super().__init__()
        self._own = {id(inner) for path, inner in module.named_modules() if path in paths}

    def shardable_parameters(self, module: Any) -> Dict[str, nn.Parameter]:
        """The collection's parameters, if it is one of those to shard."""
        if id(module) not in self._own:
            return {}
        return super().shardable_parameters(module)  # type: ignore[misc]

    def sharding_types(self, compute_device_type: str) -> List[str]:
        """TorchRec's leaves out sharding types on the CPU that work there."""
        return _SHARDINGS


class _Bags(_Some, EmbeddingBagCollectionSharder):
    pass


class _Sequences(_Some, EmbeddingCollectionSharder):
    pass


def fill(wanted: Mapping[Any, Any], values: Mapping[Any, torch.Tensor]) -> None:
    """Gives every tensor, whole or sharded, its value; wrapping has drawn them again."""
    for name, tensor in wanted.items():
        for part, value in _parts(tensor, values[name]):
            # The slots of parameters that stay whole are the same tensors still.
            if part is not value:
                part.copy_(value)


def _parts(tensor: Any, whole: torch.Tensor) -> Iterator[Tuple[torch.Tensor, torch.Tensor]]:
    """(this process's part of `tensor`, the same of `whole`)."""
    if not hasattr(tensor, "local_shards"):
        yield tensor, whole
        return
    for shard in tensor.local_shards():
        places = zip(shard.metadata.shard_offsets, shard.metadata.shard_sizes)
        yield shard.tensor, whole[tuple(slice(start, start + size) for start, size in places)]


def _optimizer(
    model: DistributedModelParallel, whole: GraphOptimizer, exchanged: Sequence[str]
) -> ShardedOptimizer:
    fused = {
        name: (optimizer, optimizer.state[optimizer.params[key]])
        for name, key, optimizer in fused_optimizers(model.fused_optimizer)
        if name in whole.rules
    }
    by_id = shared(model).values()
    return ShardedOptimizer(whole, dict(model.named_parameters()), fused, by_id, exchanged)


def fused_optimizers(optimizer: Any, path: str = "") -> Iterator[Tuple[str, str, Any]]:
    """(the table's attribute, its key in the optimizer, the optimizer) of each fused one."""
    if isinstance(optimizer, CombinedOptimizer):
        for key, inner in optimizer.optimizers:
            yield from fused_optimizers(
                inner, CombinedOptimizer.prepend_opt_key(key, path) if key else path
            )
        return
    for key in optimizer.params:
        yield CombinedOptimizer.prepend_opt_key(key, path), key, optimizer
