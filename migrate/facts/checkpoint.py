"""Facts on the model in a TensorFlow checkpoint and its MetaGraph, without TensorFlow.

1. Slots identify the optimizer. Its settings are constants of the MetaGraph; Adagrad's initial
   accumulator is the smallest that the checkpoint holds, as accumulators only grow.
2. A table's row is cold where it is all zero, or where every slot still has its initial value.
3. Tables are the variables that the MetaGraph looks up; without one, all of two dimensions that
   are not partitioned, since nothing tells how ids were dealt to partitions.
4. The global step says whether it was trained at all.
5. `<layer>/moving_mean` and `<layer>/moving_variance` are BatchNorm's.

All data is read in a stream, and every piece is checked.
"""

import re
from typing import Dict, Iterator, Mapping, Optional, Set

import numpy as np

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.checkpoint.partitions import partitions
from migrate.facts.slot_samples import SlotSample, cold_rows
from migrate.graph.attributes import float32
from migrate.graph.constants import constant_float
from migrate.graph.evidence import Evidence, find_evidence
from migrate.graph.metagraph import Graph
from migrate.graph.training import find_training
from migrate.open import open_checkpoint
from migrate.optimizers.adam import ADAM, LAZY_ADAM
from migrate.optimizers.registry import OPTIMIZERS
from migrate.optimizers.slots import Slots
from parity.diagnosis.facts import COMBINERS, Facts, agreed, is_step, moving_statistics
from semisync.encoding.dtypes import BY_NAME, as_rows

_CHUNK = 1 << 20  # values at a time


def read_checkpoint(prefix: str) -> Facts:
    """The facts; raises BadInput as `migrate.open_checkpoint`."""
    with open_checkpoint(prefix) as checkpoint:
        evidence = find_evidence(checkpoint, None)
        training = evidence.training if evidence else find_training(checkpoint, None)
        slots = training.slots
        states = _sampled(checkpoint, slots)
        most = max(states.values(), key=lambda state: state.seen, default=SlotSample(""))
        optimizer = _optimizer(slots)
        record = OPTIMIZERS.get(optimizer or "")
        return Facts(
            source=prefix,
            optimizer=optimizer,
            settings={
                **({} if record is None else record.fixed),
                **agreed(owner.constants for owner in slots.values()),
                **most.settings(),
            },
            denominator=most.denominator(),
            slots=len(slots),
            moving=moving_statistics(checkpoint, lambda name: as_rows(checkpoint.read(name))),
            batch_norm=_batch_norm(evidence.graph) if evidence else {},
            combiners=_combiners(evidence) if evidence else {},
            step=_step(checkpoint),
            cold={
                name: _cold_rows(checkpoint, name, slots.get(name), states, deal)
                for name, deal in _tables(checkpoint, evidence, slots).items()
            },
        )


def _optimizer(slots: Mapping[str, Slots]) -> Optional[str]:
    names = {owner.variant for owner in slots.values()}
    if names == {ADAM.name, LAZY_ADAM.name}:  # its dense variables are Adam's
        names = {LAZY_ADAM.name}
    return ", ".join(sorted(names)) or None


def _tables(
    checkpoint: Checkpoint, evidence: Optional[Evidence], slots: Mapping[str, Slots]
) -> Dict[str, bool]:
    """Names of the tables, with whether their ids were dealt by "mod"."""
    state = {name for owner in slots.values() for name in owner.sources.values()}
    dealt: Dict[str, bool] = {}
    for name, info in checkpoint.items():
        if len(info.shape) != 2 or not BY_NAME[info.dtype].is_floating or name in state:
            continue
        if evidence is None:
            # How ids were dealt to partitions is known to the MetaGraph alone.
            if partitions(info) == 1:
                dealt[name] = False
        elif name in evidence.lookups and evidence.lookups[name].strategy != "unknown":
            dealt[name] = evidence.lookups[name].strategy == "mod"
    return dealt


def _cold_rows(
    checkpoint: Checkpoint,
    name: str,
    slots: Optional[Slots],
    states: Mapping[str, SlotSample],
    deal: bool,
) -> np.ndarray:
    """The mask of cold rows, bool (rows,), in the order of the ids."""
    per_chunk = max(1, _CHUNK // max(1, checkpoint[name].shape[1]))

    def stream(source: str) -> Iterator[np.ndarray]:
        return (as_rows(rows) for _, rows in checkpoint.chunks(source, per_chunk, deal))

    if slots is None:
        return cold_rows(stream(name), (), ())
    held = [stream(slots.sources[k]) for k in sorted(slots.sources)]
    return cold_rows(stream(name), held, states[slots.optimizer].initial)


def _sampled(checkpoint: Checkpoint, slots: Mapping[str, Slots]) -> Dict[str, SlotSample]:
    """The samples of second-moment slots, by optimizer."""
    samples: Dict[str, SlotSample] = {}
    for owner in slots.values():
        state = samples.setdefault(owner.optimizer, SlotSample(owner.optimizer))
        source = None
        if state.second_moment is not None:
            source = owner.sources.get(state.second_moment)
        if source is None or not BY_NAME[checkpoint[source].dtype].is_floating:
            continue
        width = int(np.prod(checkpoint[source].shape[1:], dtype=np.int64)) or 1
        # Neither the smallest value nor the median depends on the order of rows.
        for _, rows in checkpoint.chunks(source, max(1, _CHUNK // width)):
            state.add(as_rows(rows))
    return samples


def _step(checkpoint: Checkpoint) -> Optional[int]:
    """The largest of the counts of updates."""
    counts = [
        int(checkpoint.read(name).reshape(()))
        for name, info in checkpoint.items()
        if is_step(name) and info.dtype in ("int32", "int64") and not info.shape
    ]
    return max(counts, default=None)


def _batch_norm(graph: Graph) -> Dict[str, float]:
    epsilons: Set[Optional[float]] = set()
    momenta: Set[Optional[float]] = set()
    for name, node in graph.nodes.items():
        if node.op.startswith("FusedBatchNorm") and "Grad" not in node.op:
            epsilons.add(float32(graph, node, "epsilon"))
        # The epsilon of tf.nn.batch_normalization, variance + epsilon.
        elif re.search(r"batchnorm(_\d+)?/add/y$", name):
            epsilons.add(constant_float(graph, name))
        # The op's constant called decay is 1 - momentum (moving_averages.py).
        elif name.endswith("AssignMovingAvg/decay"):
            decay = constant_float(graph, name)
            momenta.add(None if decay is None else round(1 - decay, 9))
    agreed_on = {}
    for setting, values in (("epsilon", epsilons), ("momentum", momenta)):
        value = values.pop() if len(values) == 1 else None
        if value is not None:
            agreed_on[setting] = value
    return agreed_on


def _combiners(evidence: Evidence) -> Dict[str, str]:
    """Each table's combiner in the graph; one with several, or none, is left out."""
    return {
        name: uses[0].combiner
        for name, uses in evidence.poolings.items()
        if len(uses) == 1 and uses[0].combiner in COMBINERS
    }
