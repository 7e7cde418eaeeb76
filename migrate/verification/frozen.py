"""The conversion of a frozen graph: the constants of its model.py, with those of the graph.

There is no manifest. The source is written again, and each of its constants must be in the
directory's own module, in every bit. Single numbers stand in the code, which `--forward` compares.
"""

from __future__ import annotations

from typing import Sequence

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.model.load import build_module, read_meta_graph, write_source
from migrate.model.outputs import find_outputs
from migrate.runtime.source import read_source
from migrate.scoring import torch_code
from migrate.verification.expected import as_bytes
from migrate.verification.findings import Verification


def compare_constants(
    checkpoint: Checkpoint, directory: str, assets: Sequence[str] = ()
) -> Verification:
    """Compares the converted `directory` with the frozen graph that `checkpoint` is.

    Raises:
        BadInput: there is no model.py, or it cannot be loaded.
    """
    result = Verification(checkpoint.prefix, directory)
    with torch_code.explained(f"{directory}/model.py"):
        source = read_source(directory)
        ours = dict(source.load().named_buffers())
    found = read_meta_graph(checkpoint, None, assets=assets)
    outputs = find_outputs(found.graph, list(source.OUTPUTS))
    module = build_module(write_source(found, checkpoint, outputs), checkpoint)
    for name, wanted in module.named_buffers():
        result.tensors += 1
        result.rows += len(wanted)
        if name not in ours:
            result.differs(f"model.py has no constant {name!r}")
        elif (ours[name].dtype, ours[name].shape) != (wanted.dtype, wanted.shape):
            sizes = [f"{one.dtype} {list(one.shape)}" for one in (ours[name], wanted)]
            result.differs(f"{name!r} is {sizes[0]} in model.py, and {sizes[1]} in the graph")
        else:
            rows = int((as_bytes(ours[name]) != as_bytes(wanted)).any(1).sum())
            result.differing_rows += rows
            if rows:
                result.differs(f"{name!r}: {rows:,} of {len(wanted):,} rows differ")
    return result
