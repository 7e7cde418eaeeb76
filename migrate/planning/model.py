"""A conversion's plan: what each tensor of a checkpoint becomes. It is data, and YAML.

    tables       variables that are looked up: they become tables of an EmbeddingBagCollection
    hash_tables  tables by ids of their own: they become such tables too, with a way from id to row
    dense        all other variables
    scalars      step counters, beta powers: written, and their values put into the manifest
    dropped      what is not written, and why

The plan names tensors, it holds none. Whoever reads one back (`Plan.from_yaml`) may have edited
it; `migrate.convert` checks it against the checkpoint before it writes anything.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any, Dict, List, Optional, Union

from migrate.manifest.modes import MANAGED
from migrate.manifest.typed import build
from semisync.common.errors import BadInput

SCHEMA = "semisync.plan/1"
STRATEGIES = ("div", "mod")
CASTS = ("float16", "bfloat16", "float32")
POOLINGS = ("sum", "mean", "sqrtn", "none")  # TorchRec has no sqrtn
STATICS = {"fp16": "float16", "int8": "int8", "float32": "float32"}  # and torch's name of the type
PLACEMENTS = ("device", "uvm", "cpu")


@dataclass
class Table:
    """An embedding table.

    name                in TorchRec
    variable            in the checkpoint, [rows, dim]
    dtype               TensorFlow's name of its data type
    partitions          number of parts along the rows
    partition_strategy  "div", "mod", or None for a single part
    optimizer           "Adagrad", "Adam", ..., or None where the checkpoint has no slots
    slots               the optimizer's name of a slot -> tensor in the checkpoint, [rows, dim]
    hyperparameters     of the optimizer, as far as the MetaGraph has them as constants
    cast                "float16", "bfloat16" or "float32": data type in the target, where another
    row_wise            Adagrad: write the mean of each row's accumulator, an approximation
    features            that it embeds, in the model config; none: one of the table's own name
    pooling             "sum", "mean", "sqrtn" or "none" (an id, a vector), in the model config
    weighted            whether each id has a weight, in the model config
    static              "fp16", "int8" or "float32": pretrained and trained no more; written in this
                        type and without its slots; int8 as in migrate.manifest.quantization
    placement           "device", "uvm" or "cpu": where TorchRec's planner shall put it
    """

    name: str
    variable: str
    rows: int
    dim: int
    dtype: str
    partitions: int = 1
    partition_strategy: Optional[str] = None
    optimizer: Optional[str] = None
    slots: Dict[str, str] = field(default_factory=dict)
    hyperparameters: Dict[str, float] = field(default_factory=dict)
    cast: Optional[str] = None
    row_wise: bool = False
    features: List[str] = field(default_factory=list)
    pooling: Optional[str] = None
    weighted: bool = False
    static: Optional[str] = None
    placement: Optional[str] = None

    @property
    def source(self) -> str:
        """Its name in the checkpoint."""
        return self.variable

    @property
    def target_dtype(self) -> str:
        """Torch's name of the weight's type in the target; "int8" for quantized rows."""
        return STATICS[self.static] if self.static else self.cast or self.dtype


@dataclass
class HashedTable:
    """A table by ids (`migrate.hash_tables`).

    name             in TorchRec
    table, kind      in the source: its name and format
    stored           rows there; what the format keeps for itself and duplicates count too
    dim, dtype       of a row
    ids              how the target finds an id's row, one of migrate.manifest.modes.MODES
    rows             of the target; None: what the ids need (mpzch: a quarter more than are stored)
    buckets          mpzch: parts of the table that are shared out to ranks
    duplicates       an id in two partitions: "error", or "newest" version wins
    optimizer, slots, hyperparameters, cast, features, pooling, weighted, static, placement: as in
                     Table; a slot's source is its name in the table
    fill             the optimizer's name of a slot -> value for ids without it and for free rows
    """

    name: str
    table: str
    kind: str
    stored: int
    dim: int
    dtype: str
    ids: str = "rows"
    rows: Optional[int] = None
    buckets: int = 1
    duplicates: str = "error"
    optimizer: Optional[str] = None
    slots: Dict[str, str] = field(default_factory=dict)
    fill: Dict[str, float] = field(default_factory=dict)
    hyperparameters: Dict[str, float] = field(default_factory=dict)
    cast: Optional[str] = None
    features: List[str] = field(default_factory=list)
    pooling: Optional[str] = None
    weighted: bool = False
    static: Optional[str] = None
    placement: Optional[str] = None

    @property
    def source(self) -> str:
        """As Table.source."""
        return self.table

    @property
    def target_dtype(self) -> str:
        """As Table.target_dtype."""
        return STATICS[self.static] if self.static else self.cast or self.dtype

    @property
    def written_slots(self) -> Dict[str, str]:
        """Those of `slots` that are written: of a static table none."""
        return {} if self.static else self.slots


AnyTable = Union[Table, HashedTable]


@dataclass
class Dense:
    """A variable that is no table; `partition_strategy` is "mod" where its rows must be dealt.
    name: in the target, where it is another; optimizer, slots, hyperparameters: as in Table."""

    variable: str
    shape: List[int]
    dtype: str
    name: Optional[str] = None
    partition_strategy: Optional[str] = None
    optimizer: Optional[str] = None
    slots: Dict[str, str] = field(default_factory=dict)
    hyperparameters: Dict[str, float] = field(default_factory=dict)


@dataclass
class Plan:
    """source: the checkpoint's prefix. module: path of the EmbeddingBagCollection in the model.
    meta: path of the MetaGraph that the plan rests on; None: PREFIX.meta where that exists.
    newer: prefix of a DeepRec incremental checkpoint that is laid over the source.
    notes: what a reader should know before converting."""

    source: str
    module: str = "ebc"
    meta: Optional[str] = None
    newer: Optional[str] = None
    tables: List[Table] = field(default_factory=list)
    hash_tables: List[HashedTable] = field(default_factory=list)
    dense: List[Dense] = field(default_factory=list)
    scalars: List[str] = field(default_factory=list)
    dropped: Dict[str, str] = field(default_factory=dict)
    notes: List[str] = field(default_factory=list)

    def fqn(self, table: AnyTable) -> str:
        """The fully qualified name of the table's weight in the model.

        TorchRec's ManagedCollisionEmbeddingBagCollection has its tables one module further down.
        """
        inner = isinstance(table, HashedTable) and table.ids in MANAGED
        module = self.module + "._embedding_module" * inner
        return f"{module}.embedding_bags.{table.name}.weight"

    def to_yaml(self) -> str:
        """The plan as text that `from_yaml` reads back."""
        import yaml

        return yaml.safe_dump(
            {"schema": SCHEMA, **asdict(self)}, sort_keys=False, allow_unicode=True, width=100
        )

    @classmethod
    def from_yaml(cls, text: str, where: str = "the plan") -> Plan:
        """The plan in `text`. BadInput names what is missing, unknown, twice there or of the wrong
        type."""
        import yaml

        try:
            data = _load(text)
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            raise BadInput(f"{where} is not YAML: {' '.join(str(error).split())}") from error
        if not isinstance(data, dict) or data.pop("schema", None) != SCHEMA:
            raise BadInput(f"{where} has no line 'schema: {SCHEMA}'; it is not a plan")
        return build(cls, data, where)


def _load(text: str) -> Any:
    """As yaml.safe_load, but a field that comes twice is an error: of these the last would win."""
    import yaml

    class Loader(yaml.SafeLoader):
        def construct_mapping(self, node: Any, deep: bool = False) -> Dict[Any, Any]:
            names = Counter(key.value for key, _ in node.value if isinstance(key.value, str))
            for name, count in names.items():
                if count > 1:
                    raise yaml.YAMLError(f"the field {name!r} comes twice{node.start_mark}")
            found: Dict[Any, Any] = super().construct_mapping(node, deep)
            return found

    return yaml.load(text, Loader)
