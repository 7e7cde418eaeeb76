"""Does a plan contradict the MetaGraph? An edited one may not deny its look-ups and training ops.

The plan decides what the MetaGraph leaves open. A slot that was recognised by its name alone may be
put elsewhere.
"""

from __future__ import annotations

from typing import Dict, Mapping, Optional

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.graph.evidence import Evidence, find_evidence
from migrate.optimizers.slots import torch_names
from migrate.planning.plan import STRATEGIES, Plan, Table
from semisync.common.errors import BadInput

_CONTRARY = {("sum", False), ("mean", False)}  # without weights neither can stand for the other


def check_against_graph(plan: Plan, checkpoint: Checkpoint) -> None:
    """Raises BadInput for the first strategy, pooling or slot that contradicts the MetaGraph."""
    by_rows = [table for table in plan.tables if table.ids is None]
    if not by_rows and not plan.dense:
        return
    evidence = find_evidence(checkpoint, plan.meta, plan.dropped.__contains__)
    if evidence is None:
        return
    for table in by_rows:
        _check_strategy(table.variable, table.partition_strategy, evidence)
        _check_slots(table.variable, table.slots, True, evidence)
        _check_pooling(table, evidence)
    for dense in plan.dense:
        _check_strategy(dense.variable, dense.partition_strategy, evidence)
        _check_slots(dense.variable, dense.slots, False, evidence)


def _check_strategy(variable: str, strategy: Optional[str], evidence: Evidence) -> None:
    lookup = evidence.lookups.get(variable)
    seen = None if lookup is None else lookup.strategy
    if seen in STRATEGIES and strategy != seen:
        raise BadInput(
            f"{variable!r}: the plan says partition strategy {strategy!r}, but its look-up in "
            f"{evidence.graph.path} uses {seen!r}; set it to {seen} in the plan"
        )


def _check_pooling(table: Table, evidence: Evidence) -> None:
    uses = evidence.poolings.get(table.variable, [])
    if len(uses) == 1 and {uses[0][:2], (table.pooling, table.weighted)} == _CONTRARY:
        raise BadInput(
            f"{table.variable!r}: the plan says pooling {table.pooling!r}, but "
            f"{evidence.graph.path} looks it up as {uses[0]}; set it to {uses[0].combiner}"
        )


def _check_slots(
    variable: str, planned: Mapping[str, str], fused: bool, evidence: Evidence
) -> None:
    """Checks that each slot is the one that the training ops read in its place, and no other's."""
    owners = {
        source: owner
        for owner, slots in evidence.training.slots.items()
        for source in slots.sources.values()
        if slots.by_graph
    }
    trained = _trained(variable, fused, evidence)
    for name, source in planned.items():
        if owners.get(source, variable) != variable:
            raise BadInput(
                f"{variable!r}: the plan says slot {name} is {source!r}, but the training ops in "
                f"{evidence.graph.path} use that for {owners[source]!r}; put it back in the plan"
            )
        if trained.get(name, source) != source:
            raise BadInput(
                f"{variable!r}: the plan says slot {name} is {source!r}, but the training ops in "
                f"{evidence.graph.path} say {trained[name]!r}; set it to that in the plan"
            )


def _trained(variable: str, fused: bool, evidence: Evidence) -> Dict[str, str]:
    """Torch's names of the slots that training ops identify -> the tensors."""
    slots = evidence.training.slots.get(variable)
    if slots is None or not slots.by_graph:
        return {}
    sources = [slots.sources[k] for k in sorted(slots.sources)]
    return {name: source for name, source in zip(torch_names(slots, fused), sources) if name}
