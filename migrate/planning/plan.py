"""A conversion's plan: the target of each tensor of a checkpoint.

    tables   variables that are looked up, and hash tables: they become tables of an
             EmbeddingBagCollection
    dense    all other variables
    scalars  training's counters, step counters and beta powers: written, and their values put
             into the manifest
    dropped  tensors that are not written, and why

The plan names tensors, it holds none. It is data, and YAML, in which tables by ids of their own
stand apart, as `hash_tables`. One that is read back (`Plan.from_yaml`) may have been edited, so
`migrate.convert` checks it against the checkpoint before it writes anything.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Dict, List, Mapping, Optional

from migrate.manifest.id_modes import MANAGED
from migrate.manifest.typed import Key, checked, keys_of
from migrate.planning import yaml_text
from semisync.common.errors import BadInput

SCHEMA = "semisync.plan/1"
STRATEGIES = ("div", "mod")
CASTS = ("float16", "bfloat16", "float32")
POOLINGS = ("sum", "mean", "sqrtn", "none")  # TorchRec has no sqrtn
STATICS = {"fp16": "float16", "int8": "int8", "float32": "float32"}  # and torch's name of the type
PLACEMENTS = ("device", "uvm", "cpu")


@dataclass
class IdMapping:
    """How the ids of a hash table (`migrate.hash_tables`) find their rows.

    Attributes:
        kind: format of the source.
        stored: rows there, duplicates and the format's own rows included.
        mode: how the target finds an id's row, one of migrate.manifest.id_modes.MODES.
        buckets: mpzch: parts of the table that are dealt to ranks.
        duplicates: an id in two partitions: "error", or "newest" version wins.
        fill: the optimizer's name of a slot -> value for ids without it and for free rows.
    """

    kind: str
    stored: int
    mode: str = "rows"
    buckets: int = 1
    duplicates: str = "error"
    fill: Dict[str, float] = field(default_factory=dict)


@dataclass
class Table:
    """An embedding table.

    Attributes:
        name: in TorchRec.
        variable: in the checkpoint: a variable [rows, dim], or a hash table.
        dim: values per row.
        dtype: TensorFlow's name of its data type.
        rows: of the target; None: as the ids of a hash table need (mpzch: a quarter more than are
            stored).
        ids: how the ids of a hash table find their rows; None: an id is its row number.
        partitions: number of parts along the rows.
        partition_strategy: "div", "mod", or None for a single part.
        optimizer: "Adagrad", "Adam", ..., or None where the checkpoint has no slots.
        slots: the optimizer's name of a slot -> tensor [rows, dim] in the checkpoint, or name of
            the slot in the hash table.
        hyperparameters: of the optimizer, where the MetaGraph has them as constants.
        power: the plan's scalar that gives the optimizer's step, where a training op
            names it.
        cast: "float16", "bfloat16" or "float32": data type in the target, where another.
        row_wise: Adagrad: write the mean of each row's accumulator, an approximation.
        features: that it embeds, in the model config; none: one of the table's own name.
        pooling: "sum", "mean", "sqrtn" or "none" (an id, a vector), in the model config.
        weighted: whether each id has a weight, in the model config.
        static: "fp16", "int8" or "float32": pretrained and no longer trained; written in this type
            and without its slots; int8 as in migrate.manifest.quantization.
        placement: "device", "uvm" or "cpu": where TorchRec's planner is to put it.
    """

    name: str
    variable: str
    dim: int
    dtype: str
    rows: Optional[int] = None
    ids: Optional[IdMapping] = None
    partitions: int = 1
    partition_strategy: Optional[str] = None
    optimizer: Optional[str] = None
    slots: Dict[str, str] = field(default_factory=dict)
    hyperparameters: Dict[str, float] = field(default_factory=dict)
    power: Optional[str] = None
    cast: Optional[str] = None
    row_wise: bool = False
    features: List[str] = field(default_factory=list)
    pooling: Optional[str] = None
    weighted: bool = False
    static: Optional[str] = None
    placement: Optional[str] = None

    @property
    def target_dtype(self) -> str:
        """Torch's name of the weight's type in the target; "int8" for quantized rows."""
        return STATICS[self.static] if self.static else self.cast or self.dtype

    @property
    def written_slots(self) -> Dict[str, str]:
        """The `slots` that are written: none of a static table."""
        return {} if self.static else self.slots


@dataclass
class Dense:
    """A variable that is not a table; `partition_strategy` is "mod" where its rows must be dealt.

    Attributes:
        name: in the target, where it differs from `variable`.
        optimizer, slots, hyperparameters, power: as in Table.
    """

    variable: str
    shape: List[int]
    dtype: str
    name: Optional[str] = None
    partition_strategy: Optional[str] = None
    optimizer: Optional[str] = None
    slots: Dict[str, str] = field(default_factory=dict)
    hyperparameters: Dict[str, float] = field(default_factory=dict)
    power: Optional[str] = None


@dataclass
class Plan:
    """The target of each tensor of a checkpoint; edit it, or its YAML, before `migrate.convert`.

    Attributes:
        source: the checkpoint's prefix.
        module: path of the EmbeddingBagCollection in the model.
        meta: path of the MetaGraph that the plan rests on; None: PREFIX.meta where that exists.
        newer: prefix of a DeepRec incremental checkpoint that is laid over the source.
        tables: the embedding tables.
        dense: the other variables.
        scalars: names of tensors that become numbers of the manifest.
        dropped: the reason by the name of a tensor that is left out.
        notes: to read before converting.

    Examples:
        >>> plan = migrate.plan(migrate.open_checkpoint("model.ckpt-40000"))
        >>> same = migrate.Plan.from_yaml(plan.to_yaml())
        >>> [plan.fqn(table) for table in same.tables]
        ['ebc.embedding_bags.cities.weight', 'ebc.embedding_bags.products.weight']
    """

    source: str
    module: str = "ebc"
    meta: Optional[str] = None
    newer: Optional[str] = None
    tables: List[Table] = field(default_factory=list)
    dense: List[Dense] = field(default_factory=list)
    scalars: List[str] = field(default_factory=list)
    dropped: Dict[str, str] = field(default_factory=dict)
    notes: List[str] = field(default_factory=list)

    @property
    def hash_tables(self) -> List[Table]:
        """The `tables` whose ids are not row numbers."""
        return [table for table in self.tables if table.ids is not None]

    def fqn(self, table: Table) -> str:
        """The fully qualified name of a table's weight in the model.

        TorchRec's ManagedCollisionEmbeddingBagCollection has its tables one module further down.

        Args:
            table: of `tables`.

        Returns:
            A name with dots.
        """
        inner = table.ids is not None and table.ids.mode in MANAGED
        module = self.module + "._embedding_module" * inner
        return f"{module}.embedding_bags.{table.name}.weight"

    def to_yaml(self) -> str:
        """The plan as text that `from_yaml` reads back.

        Returns:
            YAML.
        """
        return yaml_text.dump(self.document())

    def document(self) -> Dict[str, Any]:
        """The contents of the plan's YAML.

        Returns:
            A dict of plain data, with the plan's schema.
        """
        return {"schema": SCHEMA, **_sections(self)}

    @classmethod
    def from_yaml(cls, text: str, where: str = "the plan") -> Plan:
        """The plan in `text`.

        Args:
            text: YAML, as `to_yaml` writes it.
            where: its name in the message.

        Returns:
            A `Plan`.

        Raises:
            BadInput: something is missing, unknown, given twice or of the wrong type.
        """
        data = yaml_text.load(text, where)
        if not isinstance(data, dict) or data.pop("schema", None) != SCHEMA:
            raise BadInput(f"{where} has no line 'schema: {SCHEMA}'; it is not a plan")
        values = checked({**keys_of(cls), **_LISTS}, data, where, cls.__name__)
        values["tables"] = [
            _table(entry, keys, f"{where}: {section}[{index}]")
            for section, keys in _SECTIONS.items()
            for index, entry in enumerate(values.pop(section, []))
        ]
        return cls(**values)


# The lists of tables in the plan's YAML: key of an entry -> field of Table, or of its IdMapping.
_SHARED = ("features", "pooling", "weighted", "static", "placement")
_SECTIONS: Dict[str, Dict[str, str]] = {
    "tables": {
        **{key: key for key in ("name", "variable", "rows", "dim", "dtype")},
        **{key: key for key in ("partitions", "partition_strategy", "optimizer", "slots")},
        **{key: key for key in ("hyperparameters", "power", "cast", "row_wise", *_SHARED)},
    },
    "hash_tables": {
        "name": "name",
        "table": "variable",
        "kind": "ids.kind",
        "stored": "ids.stored",
        "dim": "dim",
        "dtype": "dtype",
        "ids": "ids.mode",
        "rows": "rows",
        "buckets": "ids.buckets",
        "duplicates": "ids.duplicates",
        "optimizer": "optimizer",
        "slots": "slots",
        "fill": "ids.fill",
        **{key: key for key in ("hyperparameters", "cast", *_SHARED)},
    },
}
_LISTS = dict.fromkeys(_SECTIONS, Key(List[Any], required=False))


def _sections(plan: Plan) -> Dict[str, Any]:
    """The plan as plain data, with the keys of its YAML."""
    data: Dict[str, Any] = {}
    for key, value in asdict(plan).items():
        if key == "tables":
            for section, keys in _SECTIONS.items():
                by_ids = section == "hash_tables"
                members = [table for table in value if (table["ids"] is not None) == by_ids]
                data[section] = [_entry(table, keys) for table in members]
        else:
            data[key] = value
    return data


def _entry(table: Dict[str, Any], keys: Mapping[str, str]) -> Dict[str, Any]:
    of_ids = {f"ids.{name}": value for name, value in (table["ids"] or {}).items()}
    fields = {**table, **of_ids}
    return {key: fields[name] for key, name in keys.items()}


def _table(data: Any, keys: Mapping[str, str], where: str) -> Table:
    of_ids = {f"ids.{name}": key for name, key in keys_of(IdMapping).items()}
    fields = {**keys_of(Table), **of_ids}
    expected = {key: fields[name] for key, name in keys.items()}
    if "ids" not in keys:
        # Only the rows of a hash table may be left to the conversion.
        expected["rows"] = Key(int, required=True)
    values = {keys[key]: value for key, value in checked(expected, data, where, "Table").items()}
    ids = {name[4:]: values.pop(name) for name in list(values) if name.startswith("ids.")}
    return Table(**values, ids=IdMapping(**ids) if ids else None)
