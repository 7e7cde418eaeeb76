"""Carrying out a plan: stream a checkpoint's tensors into a torch checkpoint.

1. The plan is checked against the checkpoint before anything is written (`migrate.agreement`).
2. Each tensor is read in chunks of at most 32 MiB (one row at least), rows in the order of the
   ids, its crc32c checked as it passes; each chunk is hashed and written. Memory is bounded by a
   few chunks, whatever the size of a table.
3. The directory gets its name when it is whole (`migrate.targets.staging`).

Names in the target, for a table T at module path M and a dense variable V:

    M.embedding_bags.T.weight
    optim.state.M.embedding_bags.T.weight.T.momentum1     Adagrad, FBGEMM's fused optimizer
    optim.state.M.embedding_bags.T.weight.exp_avg         Adam and others, torch.optim's names
    dense.V, dense_optim.V.<slot>
"""

from __future__ import annotations

import hashlib
import math
import os
from typing import Any, Callable, Iterator, List, NamedTuple, Optional, Tuple

import numpy

from migrate.agreement import check_plan
from migrate.ahead import one_ahead
from migrate.manifest import FILE, Manifest, TableSummary, Written
from migrate.plans import Plan, Table
from migrate.sources.bundle import Checkpoint, open_checkpoint
from migrate.sources.dtypes import BY_NAME
from migrate.targets.staging import refuse_existing, staged
from semisync.errors import UsageError

CHUNK_BYTES = 32 << 20

TARGETS = ("dcp",)

_NOTES = {
    "Adagrad": "Adagrad: TensorFlow adds no epsilon, FBGEMM 1e-8 and torch.optim 1e-10 by default: "
    "build them with eps=0; the accumulators are TensorFlow's, those of untrained rows too",
    "Adam": "Adam: FBGEMM has none on the CPU: exp_avg and exp_avg_sq of tables stand where "
    "torch.optim.Adam on data_parallel or dense tables looks for them; TensorFlow's moves every "
    "row at every step, and its epsilon is added before the bias correction: at step t it equals "
    "epsilon / sqrt(1 - beta2^t) in torch",
}

Progress = Callable[[int, int], None]


class Item(NamedTuple):
    """One tensor to write: where to, and from what; see migrate.manifest.Written for `role`."""

    fqn: str
    path: Tuple[str, ...]
    source: str
    role: str
    interleave: bool = False


def convert(
    plan: Plan, out: str, target: str = "dcp", progress: Optional[Progress] = None
) -> Manifest:
    """Writes the torch checkpoint that `plan` describes into the directory `out`.

    out: absent or an empty directory; it appears when it is complete. target: "dcp".
    progress: called with (bytes done, bytes in all) as the work goes on.
    Raises UsageError for a target that is not known or an `out` that holds something, BadInput
    where plan and checkpoint do not fit or the checkpoint is damaged.
    """
    if target not in TARGETS:
        raise UsageError(f"target {target!r} is not supported, expected one of {list(TARGETS)}")
    out = os.fspath(out)
    refuse_existing(out)
    with open_checkpoint(plan.source) as checkpoint:
        check_plan(plan, checkpoint)
        todo = items(plan)
        total = sum(checkpoint[item.source].nbytes for item in todo)
        with staged(out, total) as directory:
            return _write(plan, checkpoint, todo, directory, _Counter(total, progress))


class _Counter:
    def __init__(self, total: int, progress: Optional[Progress]) -> None:
        self._done = 0
        self._total = total
        self._progress = progress

    def add(self, count: int) -> None:
        self._done += count
        if self._progress is not None:
            self._progress(self._done, self._total)


def items(plan: Plan) -> List[Item]:
    """Every tensor that the plan writes."""
    found = []
    for table in plan.tables:
        found += _table_items(plan, table)
    for dense in plan.dense:
        deal = dense.partition_strategy == "mod"
        fqn = f"dense.{dense.variable}"
        found.append(Item(fqn, ("dense", dense.variable), dense.variable, "dense", deal))
        for slot, source in dense.slots.items():
            path = ("dense_optim", dense.variable, slot)
            found.append(Item(".".join(path), path, source, "dense slot", deal))
    for name in plan.scalars:
        found.append(Item(f"dense.{name}", ("dense", name), name, "scalar"))
    return found


def _table_items(plan: Plan, table: Table) -> List[Item]:
    deal = table.partition_strategy == "mod"
    fqn = plan.fqn(table)
    found = [Item(fqn, (fqn,), table.variable, "table", deal)]
    for slot, source in table.slots.items():
        name = f"{table.name}.{slot}" if slot == "momentum1" else slot
        path = ("optim", "state", fqn, name)
        found.append(Item(".".join(path), path, source, "table slot", deal))
    step = _step_source(plan)
    if table.optimizer == "Adam" and step is not None:
        path = ("optim", "state", fqn, "step")
        found.append(Item(".".join(path), path, step, "step"))
    return found


def _step_source(plan: Plan) -> Optional[str]:
    """The global step, where there is exactly one."""
    found = [name for name in plan.scalars if name.rpartition("/")[2] == "global_step"]
    return found[0] if len(found) == 1 else None


def _write(
    plan: Plan, checkpoint: Checkpoint, todo: List[Item], directory: str, counter: _Counter
) -> Manifest:
    from migrate.targets.dcp import DcpWriter

    manifest = Manifest(
        source=plan.source,
        target="dcp",
        module=plan.module,
        tables=[
            TableSummary(one.name, plan.fqn(one), one.rows, one.dim, one.dtype, one.optimizer)
            for one in plan.tables
        ],
        dropped=dict(plan.dropped),
        notes=plan.notes + _notes(plan),
    )
    with DcpWriter(directory) as writer:
        for item in todo:
            written, dtype = _describe(item, checkpoint)
            digest = hashlib.sha256()
            chunks = _chunks(item, checkpoint, digest, counter)
            writer.write(item.fqn, item.path, dtype, written.shape, chunks)
            written.sha256 = digest.hexdigest()
            manifest.tensors.append(written)
    for name in plan.scalars:
        manifest.scalars[name] = _plain(checkpoint.read(name).item())
    with open(os.path.join(directory, FILE), "x", encoding="utf-8") as file:
        file.write(manifest.to_json())
    return manifest


def _describe(item: Item, checkpoint: Checkpoint) -> Tuple[Written, str]:
    """The manifest's entry, its hash still open, and TensorFlow's name of the data type."""
    info = checkpoint[item.source]
    dtype = "float32" if item.role == "step" else info.dtype
    torch_name = BY_NAME[dtype].torch or ""
    return Written(item.fqn, item.source, item.role, list(info.shape), torch_name, ""), dtype


def _chunks(
    item: Item, checkpoint: Checkpoint, digest: Any, counter: _Counter
) -> Iterator[Tuple[int, numpy.ndarray]]:
    """The tensor in chunks; where there are several, the next is read while one is written."""
    info = checkpoint[item.source]
    rows = info.shape[0] if info.shape else 1
    row_bytes = info.nbytes // rows if rows else 0
    per_chunk = max(CHUNK_BYTES // row_bytes, 1) if row_bytes else max(rows, 1)
    chunks = _hashed(item, checkpoint.chunks(item.source, per_chunk, item.interleave), digest)
    for first, values in one_ahead(chunks) if rows > per_chunk else chunks:
        yield first, values
        counter.add(values.nbytes)


def _hashed(
    item: Item, chunks: Iterator[Tuple[int, numpy.ndarray]], digest: Any
) -> Iterator[Tuple[int, numpy.ndarray]]:
    for first, values in chunks:
        if item.role == "step":
            values = values.astype(numpy.float32)  # torch.optim keeps its step as a float
        digest.update(values.reshape(-1).view(numpy.uint8))
        yield first, values


def _notes(plan: Plan) -> List[str]:
    of_tables = {table.optimizer or "" for table in plan.tables}
    optimizers = of_tables | {dense.optimizer or "" for dense in plan.dense}
    notes = [_NOTES[name] for name in sorted(optimizers) if name in _NOTES]
    if "Adam" in of_tables:
        step = _step_source(plan)
        notes.append(
            f"Adam: step is the checkpoint's {step}"
            if step
            else "Adam: the checkpoint has no single global_step, so that step is not written"
        )
    return notes


def _plain(value: Any) -> Any:
    """A scalar as JSON can carry it: numbers as they are, what JSON lacks as text."""
    if isinstance(value, tuple):  # the bits of a bfloat16 are the upper half of a float32's
        value = float(numpy.uint32(value[0] << 16).view(numpy.float32))
    if isinstance(value, complex) or (isinstance(value, float) and not math.isfinite(value)):
        return str(value)
    return value
