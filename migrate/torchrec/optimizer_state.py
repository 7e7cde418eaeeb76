"""Loading the state of optimizers that step after the backward pass: torch.optim's and
`migrate.torchrec.optimizers`. Those that TorchRec fuses are filled by `load`.

TensorFlow keeps the kernel of a dense layer as [in, out], nn.Linear as [out, in]. The shape of a
parameter decides which it is, unless it is square; so the caller states it, and nothing is
guessed.

A parameter of a DistributedModelParallel is this process's part of a table: some rows, some
columns, or several blocks of columns one below the other. The module's state dict shows which: its
shards are views of the parameter. A state has the parameter's sizes, and its shards lie at the same
offsets.
"""

from __future__ import annotations

import copy
import os
from typing import Any, Collection, Dict, List, Mapping, Optional, Tuple

import torch
from torch.distributed._shard.sharded_tensor import Shard, ShardedTensor

from migrate.manifest.manifest import Written, read_manifest
from migrate.manifest.state_names import STEP, owner
from migrate.targets.reading.torch_readers import read
from migrate.torchrec.loading import check_matrices, weight_keys
from semisync.common.errors import UsageError


def load_optimizer(
    optimizer: torch.optim.Optimizer,
    parameters: Mapping[str, torch.Tensor],
    directory: str,
    module: Optional[torch.nn.Module] = None,
    transpose: Optional[Collection[str]] = None,
) -> List[str]:
    """Fills the state of an optimizer that is not fused from a converted checkpoint.

    Args:
        optimizer: of torch.optim or of migrate.torchrec.optimizers.
        parameters: those that it steps, by name: a table's weight as in
            `module.named_parameters()`, a dense variable by its name in the checkpoint; others are
            left out.
        directory: the directory that `convert` wrote.
        module: where tables are sharded, the DistributedModelParallel that they are in; every rank
            must then call this.
        transpose: names among `parameters` of the dense variables whose parameters are transposed,
            as the weights of nn.Linear are: their slots are transposed too. Where a dense variable
            is square it must be given, if only as ().

    Returns:
        The names in the checkpoint that were loaded.

    Raises:
        UsageError: none fits, shapes differ, or `transpose` is missing or names what is not a
            matrix.
        BadInput: the data is damaged.

    Examples:
        >>> from migrate.torchrec import embedding_bag_collection, load_optimizer
        >>> from migrate.torchrec.optimizers import Adagrad
        >>> tables = embedding_bag_collection("converted", {"products": ["item"]})
        >>> optimizer = Adagrad(tables.parameters(), lr=0.1)
        >>> parameters = {"ebc." + name: one for name, one in tables.named_parameters()}
        >>> load_optimizer(optimizer, parameters, "converted")
        ['optim.state.ebc.embedding_bags.products.weight.products.momentum1']
    """
    manifest = read_manifest(os.fspath(directory))
    dense = {
        entry.fqn.partition(".")[2]: entry.shape
        for entry in manifest.tensors
        if entry.role == "dense"
    }
    check_matrices(dense, transpose or ())
    weights = dict(weight_keys(manifest, dict(parameters)))
    sharded = {} if module is None else module.state_dict()
    wanted: Dict[str, Any] = {}
    states: List[Tuple[torch.Tensor, str, torch.Tensor]] = []
    for entry in manifest.tensors:
        weight, _, state = owner(manifest, entry)
        name = weights.get(weight, weight.partition(".")[2])
        if name not in parameters:
            continue
        parameter = parameters[name]
        dtype = getattr(torch, entry.dtype)
        if state == STEP:
            own = wanted[entry.fqn] = torch.empty(entry.shape, dtype=dtype)
        else:
            whole = sharded.get(name, parameter)
            transposed = _is_transposed(entry, name, whole, transpose)
            own = torch.empty(parameter.shape, dtype=dtype, device=parameter.device)
            wanted[entry.fqn] = own.t() if transposed else _sharded_alike(own, parameter, whole)
        states.append((parameter, state, own))
    if not wanted:
        raise UsageError(
            f"{directory} has no optimizer state of any of {sorted(parameters)}; name tables as "
            "module.named_parameters() does, dense variables as in TensorFlow"
        )
    read(directory, wanted)
    for parameter, state, own in states:
        if parameter.numel():  # else this process has no part of the table
            # torch.optim takes a state that is not empty for one that has a count of steps.
            optimizer.state[parameter].setdefault("step", torch.zeros(()))
            optimizer.state[parameter][state] = own
    return sorted(wanted)


def _is_transposed(
    entry: Written, name: str, parameter: Any, transpose: Optional[Collection[str]]
) -> bool:
    """Whether a slot is transposed against its parameter.

    Raises:
        UsageError: their shapes do not fit, or the kernel is square, so that its shape does not
            decide it, and the caller has not stated it.
    """
    shape = list(parameter.size())
    dense = entry.role == "dense slot"
    transposed = dense and name in (transpose or ())
    if entry.shape != (shape[::-1] if transposed else shape):
        advice = "; where tables are sharded, give the module too" if not dense else ""
        if dense and not transposed and entry.shape == shape[::-1]:
            advice = (
                "; TensorFlow's kernels are [in, out], nn.Linear's weights [out, in]: give "
                f"transpose=[{name!r}]"
            )
        raise UsageError(
            f"{entry.fqn!r} is {entry.shape} in the checkpoint, but {name!r} is {shape}{advice}"
        )
    if dense and transpose is None and len(shape) == 2 and shape[0] == shape[1] > 1:
        raise UsageError(
            f"{name!r} is {shape} in TensorFlow, [in, out], and its parameter is {shape} too, so "
            f"that its shape does not tell whether it is nn.Linear's [out, in]; give transpose="
            f"[{name!r}] if it is, else transpose=[]"
        )
    return transposed


def _sharded_alike(own: torch.Tensor, parameter: torch.Tensor, whole: Any) -> Any:
    """`own` as a sharded tensor, its shards at the offsets of those of `whole` in `parameter`."""
    if not isinstance(whole, ShardedTensor):
        return own
    shards = []
    for shard in whole.local_shards():
        distance = shard.tensor.data_ptr() - parameter.data_ptr()
        start = distance // parameter.element_size()
        values = own.reshape(-1)[start : start + shard.tensor.numel()]
        shards.append(Shard(values.reshape(shard.tensor.shape), shard.metadata))
    metadata = copy.deepcopy(whole.metadata())
    metadata.tensor_properties.dtype = own.dtype
    return ShardedTensor._init_from_local_shards_and_global_metadata(
        shards, metadata, process_group=whole._process_group
    )
