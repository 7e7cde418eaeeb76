"""The steps from which optimizers with a bias correction continue; no checkpoint stores them.

A conversion infers them (`migrate.planning.steps`) and writes them as numbers. Here they are
inferred again, from the training ops themselves and not from a plan.
"""

from __future__ import annotations

from typing import Iterator, Tuple

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.graph.find import find_meta_graph, still_there
from migrate.graph.training import find_training
from migrate.manifest.manifest import Manifest, Written
from migrate.manifest.state_names import STEP, dense_state, table_state
from migrate.optimizers.slots import Slots, torch_names
from migrate.planning.plan import Dense, Plan
from migrate.planning.steps import optimizer_step
from migrate.verification.findings import Verification


def check_steps(checkpoint: Checkpoint, manifest: Manifest, result: Verification) -> None:
    """Checks that each step that the checkpoint implies was written, with that value."""
    written = {one.fqn: one for one in manifest.tensors}
    plan = Plan(source=checkpoint.prefix, scalars=list(manifest.scalars))
    for owner, name in _owners(checkpoint, manifest):
        step = optimizer_step(plan, owner, checkpoint)
        if step is None:
            continue
        found = written.get(name)
        told = f"{owner.variable!r} was updated {step.value:.0f} times, as {step.source!r} tells"
        if found is None:
            result.differs(f"{told}, but its optimizer's step {name!r} was not written")
        elif found.value != step.value:
            result.differs(f"{told}, but its optimizer's step {name!r} is {found.value}")


def _owners(checkpoint: Checkpoint, manifest: Manifest) -> Iterator[Tuple[Dense, str]]:
    """Each variable with slots, as an entry of a plan, and the name of its step."""
    graph = find_meta_graph(checkpoint, still_there(manifest.meta, checkpoint.prefix))
    slots = find_training(checkpoint, graph, manifest.dropped.__contains__, conflicts=True).slots
    tables = {table.fqn: table for table in manifest.tables}
    for written in manifest.variables():
        known, table = slots.get(written.source), tables.get(written.fqn)
        if known is None or written.role not in ("table", "dense"):
            continue
        entry = _entry(written, known)
        if table is None:
            # Behind the first dot: a dense variable is called dense.V there.
            yield entry, ".".join(dense_state(written.fqn.partition(".")[2], STEP))
        elif not table.static:
            entry.optimizer, entry.hyperparameters = table.optimizer, table.hyperparameters
            yield entry, ".".join(table_state(written.fqn, table.name, STEP))


def _entry(written: Written, slots: Slots) -> Dense:
    names = torch_names(slots, fused=False)
    sources = [slots.sources[k] for k in sorted(slots.sources)]
    return Dense(
        variable=written.source,
        shape=written.shape,
        dtype=written.dtype,
        optimizer=slots.variant,
        slots={name: source for name, source in zip(names, sources) if name is not None},
        hyperparameters=slots.constants,
        power=slots.power,
    )
