"""Loading a converted checkpoint into modules, sharded or not.

1. A table's weight is found in the module's state dict by its last names,
   `embedding_bags.T.weight` or `embeddings.T.weight`; the path before them may differ.
2. torch.distributed.checkpoint reads the rows and columns that this process owns. Without a
   process group it reads everything. With one, every rank must call `load`.
3. The buffers by which a ManagedCollisionEmbeddingBagCollection finds the rows of raw ids come
   along, where the checkpoint was converted with --ids mch or mpzch.
4. A module with a fused optimizer (DistributedModelParallel) gets its optimizer's state too. A rank
   that owns no part of a table has an empty state for it, which is left out.
"""

from __future__ import annotations

import os
from typing import Any, Collection, Dict, Iterator, List, Mapping, Tuple

import torch

from migrate.manifest.manifest import Manifest, Written, read_manifest
from migrate.manifest.transforms import INT8
from migrate.targets.reading.torch_readers import read
from semisync.common.errors import UsageError

_MANAGED = "_managed_collision_modules."
_CONTAINERS = ("embedding_bags", "embeddings")


def load(module: torch.nn.Module, directory: str) -> List[str]:
    """Fills a module's embedding tables and fused optimizer from a converted checkpoint.

    Load after wrapping, for wrapping resets the weights. Tables that the module lacks are left out.

    Args:
        module: an EmbeddingBagCollection, a model that contains some, or a
            DistributedModelParallel.
        directory: the directory that `convert` wrote.

    Returns:
        The names in the checkpoint that were loaded.

    Raises:
        UsageError: nothing fits, or shapes differ.
        BadInput: the data is damaged.

    Examples:
        >>> from migrate.torchrec import embedding_bag_collection, load
        >>> tables = embedding_bag_collection("converted", {"cities": ["city"]})
        >>> load(tables, "converted")
        ['ebc.embedding_bags.cities.weight']
    """
    manifest = read_manifest(os.fspath(directory))
    entries = {entry.fqn: entry for entry in manifest.tensors}
    weights = module.state_dict()
    keys = dict(weight_keys(manifest, weights))
    if not keys:
        raise UsageError(
            f"the module has none of the tables {[table.name for table in manifest.tables]}; "
            "build it with embedding_bag_collection or give its tables these names"
        )
    wanted = {fqn: _unpadded(weights[key], entries[fqn]) for fqn, key in keys.items()}
    wanted.update(_id_tensors(manifest, weights))
    _check_probes(manifest, module)
    _check_lists(wanted)
    optimizer = getattr(module, "fused_optimizer", None)
    state = optimizer.state_dict() if optimizer is not None else {}
    for key, name, fqn in _slot_keys(keys, state, entries):
        wanted[fqn] = state["state"][key][name]
    for fqn, tensor in wanted.items():
        _check_shape(entries[fqn], tensor)
    read(directory, wanted)
    # On the CPU the state dicts share memory with the module; elsewhere they may be copies.
    module.load_state_dict(weights, strict=False)
    if optimizer is not None and state.get("state"):
        optimizer.load_state_dict(state)
    return sorted(wanted)


def dense_variables(directory: str, transpose: Collection[str] = ()) -> Dict[str, torch.Tensor]:
    """The dense variables and scalars of a converted checkpoint by their names in TensorFlow.

    Args:
        directory: the directory that `convert` wrote.
        transpose: names of those to transpose: TensorFlow's kernels are [in, out], nn.Linear's
            weights [out, in].

    Returns:
        {name: tensor}.

    Raises:
        UsageError: a name in `transpose` is not a matrix among the dense variables.

    Examples:
        >>> from migrate.torchrec import dense_variables
        >>> {name: list(value.shape) for name, value in dense_variables("converted").items()}
        {'kernel': [8, 1], 'global_step': []}
    """
    manifest = read_manifest(os.fspath(directory))
    wanted, names = {}, {}
    for entry in manifest.tensors:
        if entry.role in ("dense", "scalar"):
            wanted[entry.fqn] = torch.empty(entry.shape, dtype=getattr(torch, entry.dtype))
            names[entry.fqn] = entry.source
    check_matrices({names[fqn]: list(tensor.shape) for fqn, tensor in wanted.items()}, transpose)
    if wanted:
        read(directory, wanted)
    return {
        names[fqn]: tensor.t().contiguous() if names[fqn] in transpose else tensor
        for fqn, tensor in wanted.items()
    }


def check_matrices(shapes: Mapping[str, List[int]], transpose: Collection[str]) -> None:
    """Raises UsageError if `transpose` names a variable that is no matrix, given `shapes`."""
    if isinstance(transpose, str):
        raise UsageError(f"transpose is {transpose!r}, expected a list of names")
    for name in transpose:
        if len(shapes.get(name, ())) != 2:
            matrices = sorted(name for name, shape in shapes.items() if len(shape) == 2)
            raise UsageError(
                f"transpose names {name!r}, which is {shapes.get(name, 'not there')}; expected a "
                f"dense variable of two dimensions, one of {matrices}"
            )


def weight_keys(manifest: Manifest, weights: Dict[str, Any]) -> Iterator[Tuple[str, str]]:
    """(name in the checkpoint, key in the module's state dict) of each table of the module."""
    for table in manifest.tables:
        endings = tuple(f"{container}.{table.name}.weight" for container in _CONTAINERS)
        matching = [key for key in weights if ("." + key).endswith(tuple("." + e for e in endings))]
        if len(matching) > 1:
            raise UsageError(f"the module has table {table.name!r} more than once: {matching}")
        if matching:
            yield table.fqn, matching[0]


def _id_tensors(manifest: Manifest, weights: Dict[str, Any]) -> Iterator[Tuple[str, Any]]:
    """(name in the checkpoint, tensor of the module) of each buffer of managed collision."""
    for entry in manifest.tensors:
        _, inner, ending = entry.fqn.partition(_MANAGED)
        keys = [key for key in weights if inner and key.endswith(_MANAGED + ending)]
        for key in keys:
            yield entry.fqn, weights[key]


def _check_probes(manifest: Manifest, module: torch.nn.Module) -> None:
    """Checks that every HashZchManagedCollisionModule searches far enough to find all ids."""
    needed = {table.name: table.ids.max_probe for table in manifest.tables if table.ids}
    for path, inner in module.named_modules():
        table = path.rpartition(_MANAGED)[2]
        # Modules that do not probe have no `_max_probe`.
        if _MANAGED in path and getattr(inner, "_max_probe", 1 << 62) < needed.get(table, 0):
            raise UsageError(
                f"{path} has max_probe={inner._max_probe}; build it with "
                f"max_probe={needed[table]}, or it will not find some ids of table {table!r}"
            )


def _check_lists(wanted: Dict[str, Any]) -> None:
    """Refuses a sharded MCHManagedCollisionModule: each rank would need its own sorted ids."""
    for fqn, tensor in wanted.items():
        if fqn.endswith("._mch_sorted_raw_ids") and hasattr(tensor, "local_shards"):
            parts = len(tensor.metadata().shards_metadata)
            if parts > 1:
                raise UsageError(
                    f"{fqn!r} is one list of ids, but the module shards it over {parts} ranks; "
                    f"convert with --ids mpzch and buckets that are a multiple of {parts}"
                )


def _slot_keys(
    keys: Dict[str, str], state: Dict[str, Any], entries: Dict[str, Written]
) -> Iterator[Tuple[str, str, str]]:
    """(key, name of the state, name in the checkpoint) of each state of the fused optimizer."""
    states = state.get("state", {})
    for fqn, key in keys.items():
        for name, value in states.get(key, {}).items():
            if not isinstance(value, torch.Tensor) and not hasattr(value, "local_shards"):
                continue  # a plain number
            source = f"optim.state.{fqn}.{name}"
            if source not in entries:
                raise UsageError(
                    f"the module's optimizer keeps {name!r} for {key!r}, but the checkpoint has "
                    f"no {source!r}; use the optimizer that trained it"
                )
            yield key, name, source


def _unpadded(weight: Any, entry: Written) -> Any:
    """8-bit rows without FBGEMM's padding; other weights as they are."""
    if entry.transform == INT8.name and weight.dtype == torch.uint8:
        return weight[:, : entry.shape[1]]
    return weight


def _check_shape(entry: Written, tensor: Any) -> None:
    if list(tensor.size()) != entry.shape:
        raise UsageError(
            f"{entry.fqn!r} is {entry.shape} in the checkpoint, but {list(tensor.size())} in the "
            "module; the table's rows and dim, and exact (not row-wise) Adagrad, must be the same"
        )
