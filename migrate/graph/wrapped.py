"""The graph of a job that `semisync.GlobalBatchOptimizer` wraps, as if nothing wrapped it.

Its training ops take tensors that the chief makes from the batches of all workers. The job records
in the graph (`semisync.common.plain_step`) which tensors the plain job's ops take: gradients and
hyperparameters of one batch. The ops take those instead. Nodes that the plain job lacks stay, but
nothing that trains depends on them.

A graph without such records, as earlier versions write it, stays as it is, and training on from it
is refused.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, Tuple

from semisync.common.errors import BadInput
from semisync.common.plain_step import PlainStep, understand
from semisync.common.tensor_names import split

STAGED = "OrderedMapUnstage"  # the op by which the chief takes a staged payload


def plain_nodes(nodes: Mapping[str, Any], entries: Iterable[str], path: str) -> Dict[str, Any]:
    """The nodes, by name, that differ in the plain job, in the plain job's form.

    Args:
        nodes: each a `migrate.graph.metagraph.Node`.
        entries: of the collection in the file at `path`.

    Raises:
        BadInput: one is damaged.
    """
    tensors: Dict[Tuple[str, int], Tuple[str, int]] = {}
    waits: Dict[str, List[str]] = {}
    for entry in entries:
        step = understand(entry, path)
        if step is not None and _is_whole(nodes, step):
            tensors.update((split(tensor), split(own)) for tensor, own in step.tensors.items())
            waits.update(step.waits)
    plain = {}
    for name, node in nodes.items():
        if name in waits:
            # The wrapper's train op becomes a group of the plain job's ops.
            plain[name] = node._replace(op="NoOp", inputs=(), attrs={}, controls=(*waits[name],))
        elif any(edge in tensors for edge in node.inputs):
            inputs = tuple(tensors.get(edge, edge) for edge in node.inputs)
            plain[name] = node._replace(inputs=inputs)
    return plain


def own_scopes(nodes: Mapping[str, Any]) -> Tuple[str, ...]:
    """The prefixes of the wrapper's own ops; a placeholder among them is no input of the job."""
    scopes = {node.name.rpartition("/")[0] for node in nodes.values() if node.op == STAGED}
    return tuple(scope + "/" for scope in sorted(scopes) if scope)


def refuse_untold(path: str) -> BadInput:
    """The error for a wrapped job's graph that does not record the plain job's step."""
    return BadInput(
        f"{path} is the graph of a job whose optimizer semisync wraps, and does not tell the step "
        "of one batch: an earlier version built it, some variables are trained asynchronously, or "
        "a BatchNorm lies in a function; export the MetaGraph of the job without the wrapper and "
        "give it with --meta"
    )


def _is_whole(nodes: Mapping[str, Any], step: PlainStep) -> bool:
    """Whether the graph has all nodes of the step; an export may have left out some."""
    ops = [name for names in step.waits.values() for name in names]
    return all(name in nodes for name in ops + [split(own)[0] for own in step.tensors.values()])
