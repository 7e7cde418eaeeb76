"""The devices of a model config's tables, for TorchRec's planner.

    placement   kernel                 where the rows are
    device      fused, int8: quant     the GPU's memory
    uvm         fused_uvm, quant_uvm   the host's memory, read by the GPU
    cpu         none                   the host's memory; the CPU looks them up

TorchRec's planner (1.8) plans every collection of a module on one kind of device. `build` makes
collections of their own for the CPU: take them out of `Embeddings.collections` (`pop`) before the
rest is planned and wrapped, and look them up beside it.
"""

from __future__ import annotations

from typing import Any, Dict, Mapping

from torchrec.distributed.embedding_types import EmbeddingComputeKernel
from torchrec.distributed.planner import ParameterConstraints

from migrate.manifest.model_json import checked_model
from semisync.common.errors import UsageError

_KERNELS = {
    ("device", False): EmbeddingComputeKernel.FUSED,
    ("device", True): EmbeddingComputeKernel.QUANT,
    ("uvm", False): EmbeddingComputeKernel.FUSED_UVM,
    ("uvm", True): EmbeddingComputeKernel.QUANT_UVM,
}


def constraints(config: Mapping[str, Any]) -> Dict[str, ParameterConstraints]:
    """The placements of tables, for EmbeddingShardingPlanner(constraints=...).

    Args:
        config: as `read_model` gives it.

    Returns:
        {table: ParameterConstraints}, without the tables for the CPU and those without a placement.

    Raises:
        BadInput: as `build`.
        UsageError: a placement is unknown.

    Examples:
        >>> from migrate.torchrec import constraints, read_model
        >>> constraints(read_model("converted"))
        {}
    """
    chosen = {}
    for table in checked_model(config)["tables"]:
        placement = table.get("placement")
        if placement in (None, "cpu"):
            continue
        kernel = _KERNELS.get((placement, table["dtype"] == "int8"))
        if kernel is None:
            raise UsageError(
                f"table {table['name']!r} has placement {placement!r}, expected device, uvm or cpu"
            )
        chosen[table["name"]] = ParameterConstraints(compute_kernels=[kernel.value])
    return chosen
