"""Everything that a plan writes, one `Item` a tensor of the target.

Names in the target, for a table T at module path M and a dense variable V:

    M.embedding_bags.T.weight
    optim.state.M.embedding_bags.T.weight.T.momentum1     Adagrad, FBGEMM's fused optimizer
    optim.state.M.embedding_bags.T.weight.exp_avg         Adam and others, torch.optim's names
    optim.state.M.embedding_bags.T.weight.step            Adam, where the checkpoint tells it
    dense.V, dense_optim.V.<slot>, dense_optim.V.step     the last for Adam, as above
"""

from __future__ import annotations

import math
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from migrate.checkpoint.bundle import Checkpoint
from migrate.checkpoint.model import TensorInfo
from migrate.encoding.dtypes import number_type
from migrate.manifest.quantization import HEAD
from migrate.planning.model import AnyTable, Plan, Table
from migrate.planning.semantics import ADAMS, Trained, adam_step
from migrate.stream.columns import Origin
from semisync.common.errors import BadInput


class Item(NamedTuple):
    """One tensor to write.

    fqn, path   its name, and where it stands in a nested state dict
    source      the tensor of the checkpoint that it is made from
    role        see migrate.manifest.model.Written
    interleave  rows are dealt out from the partitions in turn
    transform   one of those of migrate.manifest.transforms
    dtype       torch's name of its data type (TensorFlow's is the same where both have it)
    shape       its sizes
    value       a number that is written instead of the source's own
    origins     of a hash table: where its values are staged, side by side; source is its name
    """

    fqn: str
    path: Tuple[str, ...]
    source: str
    role: str
    interleave: bool
    transform: str
    dtype: str
    shape: Tuple[int, ...]
    value: Optional[float] = None
    origins: Tuple[Origin, ...] = ()

    @property
    def is_file(self) -> bool:
        """Whether it is a file of its own, whose path is its fqn, and no tensor of the format."""
        return self.role.startswith("file")

    @property
    def rows(self) -> int:
        """Its first dimension; a scalar is one row."""
        return self.shape[0] if self.shape else 1

    @property
    def itemsize(self) -> int:
        """Size of one value in the target, in bytes."""
        return number_type(self.dtype).itemsize

    @property
    def row_bytes(self) -> int:
        """Size of one row in the target."""
        return math.prod(self.shape[1:]) * self.itemsize

    @property
    def nbytes(self) -> int:
        """Size in the target."""
        return self.rows * self.row_bytes


def items(plan: Plan, checkpoint: Checkpoint) -> List[Item]:
    """Every tensor that the plan writes; the plan has been checked against `checkpoint`."""
    found: List[Item] = []
    for table in plan.tables:
        found += _table_items(plan, table, checkpoint)
    for dense in plan.dense:
        deal = dense.partition_strategy == "mod"
        info = checkpoint[dense.variable]
        name = dense.name or dense.variable
        found.append(_item(("dense", name), dense.variable, "dense", deal, info))
        for slot, source in dense.slots.items():
            path = ("dense_optim", name, slot)
            found.append(_item(path, source, "dense slot", deal, checkpoint[source]))
        path = ("dense_optim", name, "step")
        found += _step_item(path, "dense slot", plan, dense, checkpoint)
    for name in plan.scalars:
        found.append(_item(("dense", name), name, "scalar", False, checkpoint[name]))
    return found


def check_names(found: Sequence[Item]) -> None:
    """BadInput where two of `found` would have one name in the target."""
    sources: Dict[str, str] = {}
    for item in found:
        if item.fqn in sources:
            raise BadInput(
                f"{sources[item.fqn]!r} and {item.source!r} would both become {item.fqn!r}; rename "
                "one, or its slot, in a plan (--dry-run prints it, --plan reads it back)"
            )
        sources[item.fqn] = item.source


def _item(
    path: Tuple[str, ...], source: str, role: str, interleave: bool, info: TensorInfo
) -> Item:
    return Item(".".join(path), path, source, role, interleave, "copy", info.dtype, info.shape)


def _table_items(plan: Plan, table: Table, checkpoint: Checkpoint) -> Iterator[Item]:
    deal = table.partition_strategy == "mod"
    fqn = plan.fqn(table)
    weight = _item((fqn,), table.variable, "table", deal, checkpoint[table.variable])
    yield in_target_type(weight, table)
    if table.static:
        return  # it is not trained any more
    for slot, source in table.slots.items():
        item = _item(slot_path(fqn, table, slot), source, "table slot", deal, checkpoint[source])
        if table.row_wise:
            item = item._replace(transform="row_mean", dtype="float32", shape=item.shape[:1])
        yield item
    yield from step_items(plan, table, checkpoint)


def in_target_type(weight: Item, table: AnyTable) -> Item:
    """`weight`, the rows of `table` as they are in the source, in the type of the target."""
    if table.static == "int8":
        shape = (weight.rows, HEAD + table.dim)
        return weight._replace(transform="int8", dtype="uint8", shape=shape)
    if table.target_dtype != weight.dtype:
        return weight._replace(transform="cast", dtype=table.target_dtype)
    return weight


def slot_path(fqn: str, table: AnyTable, slot: str) -> Tuple[str, ...]:
    """Where the state `slot` of the table whose weight is `fqn` stands in a state dict."""
    name = f"{table.name}.{slot}" if slot == "momentum1" else slot  # FBGEMM's has the table's name
    return ("optim", "state", fqn, name)


def step_items(plan: Plan, table: AnyTable, checkpoint: Checkpoint) -> Iterator[Item]:
    """The step of Adam, where the table was trained with it and the checkpoint tells it."""
    path = ("optim", "state", plan.fqn(table), "step")
    yield from _step_item(path, "step", plan, table, checkpoint)


def _step_item(
    path: Tuple[str, ...], role: str, plan: Plan, owner: Trained, checkpoint: Checkpoint
) -> Iterator[Item]:
    step = adam_step(plan, owner, checkpoint) if owner.optimizer in ADAMS else None
    if step is not None:
        item = _item(path, step.source, role, False, checkpoint[step.source])
        # torch.optim keeps its step as a float
        yield item._replace(dtype="float32", value=step.value)
