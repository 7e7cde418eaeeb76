"""Everything that a plan writes, one `Item` per tensor of the target, and how it is named there.

For a table T at module path M and a dense variable V:

    M.embedding_bags.T.weight
    optim.state.M.embedding_bags.T.weight.T.momentum1     Adagrad, FBGEMM's fused optimizer
    optim.state.M.embedding_bags.T.weight.exp_avg         Adam and others, torch.optim's names
    optim.state.M.embedding_bags.T.weight.step            Adam, where the checkpoint has it
    dense.V, dense_optim.V.<slot>, dense_optim.V.step     the last for Adam, as above

and for a hash table by its mode (`migrate.manifest.id_modes`), in

    rows        ids.T, sorted
    mch         the weight at M._embedding_module.embedding_bags.T.weight, and below
                M._managed_collision_collection._managed_collision_modules.T.
                    _mch_sorted_raw_ids, _mch_remapped_ids_mapping, _mch_counts (freqs, else 0),
                    _mch_last_access_iter (versions of DeepRec, else 0), _output_segments_tensor,
                    _current_iter_tensor
    mpzch       the weight there too, _hash_zch_identities, _hash_zch_bucket; from Monolith's times
                also _hash_zch_metadata, in hours
    dynamicemb  files dynamicemb/model.M/T_emb_keys.rank_0.world_size_1, and so on; the settings of
                their optimizer: migrate.manifest.dynamicemb

Source: torchrec/modules/mc_modules.py, hash_mc_modules.py; dynamicemb/
batched_dynamicemb_tables.py.
"""

from __future__ import annotations

from typing import Dict, Iterator, List, Mapping, NamedTuple, Sequence, Tuple, Union

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.hash_tables.hash_table import HashTable
from migrate.ids.sorted_tables import SortedTable
from migrate.manifest import dynamicemb
from migrate.manifest.state_names import DENSE, STEP, dense_state, table_state
from migrate.manifest.transforms import CAST, HOURS, ROW_MEAN, to_type
from migrate.planning.plan import Plan, Table
from migrate.planning.steps import Trained, optimizer_step
from migrate.stream.columns import Origin
from migrate.stream.item import Item
from semisync.common.errors import BadInput

Path = Tuple[str, ...]
Shape = Tuple[int, ...]


class Hashed(NamedTuple):
    """A hash table of the source, and its rows in the order of the target."""

    source: HashTable
    sorted: SortedTable


def items(plan: Plan, checkpoint: Checkpoint, hashed: Mapping[str, Hashed]) -> List[Item]:
    """Every tensor that the plan writes; the plan has been checked against `checkpoint`.

    Args:
        hashed: the plan's hash tables by the table's name; those that are absent are left out.
    """
    every: List[Item] = []
    for table in plan.tables:
        if table.ids is None:
            every += _of_table(plan, table, _ByRows(table, checkpoint), checkpoint)
        elif table.name in hashed:
            every += _of_hash_table(plan, table, hashed[table.name], checkpoint)
    for dense in plan.dense:
        deal = dense.partition_strategy == "mod"
        name = dense.name or dense.variable
        every.append(_copied((DENSE, name), dense.variable, "dense", checkpoint, deal))
        for slot, source in dense.slots.items():
            path = dense_state(name, slot)
            every.append(_copied(path, source, "dense slot", checkpoint, deal))
        every += _step(dense_state(name, STEP), "dense slot", plan, dense, checkpoint)
    for name in plan.scalars:
        every.append(_copied((DENSE, name), name, "scalar", checkpoint))
    return every


def check_names(every: Sequence[Item]) -> None:
    """Raises BadInput if two items would have one name in the target."""
    sources: Dict[str, str] = {}
    for item in every:
        if item.fqn in sources:
            raise BadInput(
                f"{sources[item.fqn]!r} and {item.source!r} would both become {item.fqn!r}; rename "
                "one with --rename REGEX=NAME, or its slot in the plan"
            )
        sources[item.fqn] = item.source


class _ByRows:
    """The items of a table that is a variable, its rows as the checkpoint stores them."""

    def __init__(self, table: Table, checkpoint: Checkpoint) -> None:
        self._table, self._checkpoint = table, checkpoint
        self._deal = table.partition_strategy == "mod"

    def weight(self, path: Path) -> Item:
        """The table's rows."""
        return _copied(path, self._table.variable, "table", self._checkpoint, self._deal)

    def slot(self, path: Path, name: str) -> Item:
        """The slot that torch calls `name`."""
        source = self._table.slots[name]
        return _copied(path, source, "table slot", self._checkpoint, self._deal)


class _ByIds:
    """The items of a table that is a hash table, its rows as they were sorted."""

    def __init__(self, table: Table, hashed: Hashed) -> None:
        assert table.ids is not None
        self.table, self.ids = table, table.ids
        self.source, self.sorted = hashed
        self.count = self.sorted.merged.rows

    def item(self, path: Path, role: str, dtype: str, shape: Shape, *origins: Origin) -> Item:
        """An item of the hash table."""
        return Item(path, self.table.variable, role, dtype, shape, origins=origins)

    def weight(self, path: Path) -> Item:
        """The table's rows."""
        shape = (self.count, self.table.dim)
        return self.item(path, "hashed", self.table.dtype, shape, self.column("values"))

    def slot(self, path: Path, name: str) -> Item:
        """The slot that torch calls `name`."""
        stored = self.source.slots[self.table.slots[name]]
        shape = (self.count, *stored.value_shape)
        return self.item(path, "hashed slot", stored.dtype, shape, self.slot_column(name))

    def column(self, name: str, fill: float = 0) -> Origin:
        """A column of the table; a free row has `fill`."""
        return Origin(f"{self.sorted.stem}-map.rows", f"{self.sorted.stem}.{name}", fill)

    def slot_column(self, name: str) -> Origin:
        """The rows of a slot; a free row has the slot's initial value."""
        stem = self.sorted.slots[name]
        return Origin(f"{stem}-map.rows", f"{stem}.values", self.ids.fill[name])

    def ids_column(self) -> Origin:
        """The ids in the order of the target; a free row has the target's mark."""
        return Origin("", f"{self.sorted.stem}-map.ids")


def _of_table(
    plan: Plan, table: Table, rows: Union[_ByRows, _ByIds], checkpoint: Checkpoint
) -> Iterator[Item]:
    """The weight, the slots and Adam's step of a table."""
    fqn = plan.fqn(table)
    weight = rows.weight((fqn,))
    yield weight.transformed(to_type(weight.dtype, table.target_dtype), table.target_dtype)
    for name in table.written_slots:
        slot = rows.slot(table_state(fqn, table.name, name), name)
        yield slot.transformed(ROW_MEAN) if table.row_wise else slot
    if not table.static:
        path = table_state(fqn, table.name, STEP)
        yield from _step(path, "step", plan, table, checkpoint)


def _of_hash_table(
    plan: Plan, table: Table, hashed: Hashed, checkpoint: Checkpoint
) -> Iterator[Item]:
    rows = _ByIds(table, hashed)
    if rows.ids.mode == "dynamicemb":
        yield from _dynamicemb(plan, rows, checkpoint)
        return
    yield from _of_table(plan, table, rows, checkpoint)
    yield from _ID_ITEMS[rows.ids.mode](plan, rows)


def _rows(plan: Plan, rows: _ByIds) -> Iterator[Item]:
    shape = (rows.sorted.merged.ids,)
    yield rows.item(("ids", rows.table.name), "hashed ids", "int64", shape, rows.ids_column())


def _mch(plan: Plan, rows: _ByIds) -> Iterator[Item]:
    shape, columns = (rows.count,), rows.sorted.columns
    versions = "versions" in columns and rows.ids.kind == "DeepRec"  # others have times

    ids = _state(plan, rows, "_mch_sorted_raw_ids", shape, rows.ids_column())
    yield ids._replace(role="hashed ids")
    # The i-th smallest id has row i: the mapping is the rows' own numbers.
    yield _state(plan, rows, "_mch_remapped_ids_mapping", shape, Origin("", ""))
    for name, column, is_there in (
        ("_mch_counts", "freqs", "freqs" in columns),
        ("_mch_last_access_iter", "versions", versions),
    ):
        item = _state(plan, rows, name, shape, rows.column(column))
        yield item if is_there else item._replace(value=0, origins=())
    segments = Origin("", f"{rows.sorted.stem}-segments.ends")
    # Bounds of up to 1,024 shards, TorchRec's limit (mc_modules.py).
    yield _state(plan, rows, "_output_segments_tensor", (1025,), segments)
    step = _state(plan, rows, "_current_iter_tensor", (1,))
    yield step._replace(value=rows.sorted.newest if versions else 0)


def _mpzch(plan: Plan, rows: _ByIds) -> Iterator[Item]:
    shape = (rows.count, 1)
    ids = _state(plan, rows, "_hash_zch_identities", shape, rows.ids_column())
    yield ids._replace(role="hashed ids")
    yield _state(plan, rows, "_hash_zch_bucket", (1, 1))._replace(value=rows.ids.buckets)
    if "versions" in rows.sorted.columns and rows.ids.kind == "Monolith":
        # HOURS keeps -1, which is no time.
        times = rows.column("versions", -1)
        yield _state(plan, rows, "_hash_zch_metadata", shape, times).transformed(HOURS)


_ID_ITEMS = {"rows": _rows, "mch": _mch, "mpzch": _mpzch}


def _state(plan: Plan, rows: _ByIds, name: str, shape: Shape, *origins: Origin) -> Item:
    """A buffer of the table's managed collision module, int64."""
    modules = f"{plan.module}._managed_collision_collection._managed_collision_modules"
    path = (f"{modules}.{rows.table.name}.{name}",)
    return rows.item(path, "hashed state", "int64", shape, *origins)


def _dynamicemb(plan: Plan, rows: _ByIds, checkpoint: Checkpoint) -> Iterator[Item]:
    table = rows.table
    stem = dynamicemb.stem(plan.module, table.name)

    def file(name: str, role: str, dtype: str, width: Shape, *origins: Origin) -> Item:
        path = (f"{stem}_emb_{name}.rank_0.world_size_1",)
        return rows.item(path, role, dtype, (rows.sorted.merged.ids, *width), *origins)

    yield file("keys", "file ids", "int64", (), rows.ids_column())
    values = file("values", "file", table.dtype, (table.dim,), rows.column("values"))
    yield values if table.dtype == "float32" else values.transformed(CAST, "float32")
    known = [name for name in ("freqs", "versions") if name in rows.sorted.columns]
    # dynamicemb has one score per row: how often an id was seen, or else when last.
    origins = [rows.column(name) for name in known[:1]]
    scores = file("scores", "file state", "int64", (), *origins)
    yield scores if known else scores._replace(value=0)
    if table.written_slots:
        shapes = [rows.source.slots[slot].value_shape for slot in table.written_slots.values()]
        columns = [rows.slot_column(name) for name in table.written_slots]
        width = (sum(shape[0] for shape in shapes),)
        yield file("opt_values", "file slot", "float32", width, *columns)
        path = table_state(plan.fqn(table), table.name, STEP)
        yield from _step(path, "step", plan, table, checkpoint)


def _copied(
    path: Path, source: str, role: str, checkpoint: Checkpoint, interleave: bool = False
) -> Item:
    info = checkpoint[source]
    return Item(path, source, role, info.dtype, info.shape, interleave=interleave)


def _step(
    path: Path, role: str, plan: Plan, owner: Trained, checkpoint: Checkpoint
) -> Iterator[Item]:
    """Adam's step, where `owner` was trained with Adam and the checkpoint has the step."""
    step = optimizer_step(plan, owner, checkpoint)
    if step is not None:
        item = _copied(path, step.source, role, checkpoint)
        # torch.optim keeps its step as a float
        yield item._replace(dtype="float32", value=step.value)
