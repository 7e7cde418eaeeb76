"""A conversion's record of its result: `manifest.json` beside the data.

The target formats carry no checksum of their own; the manifest has the SHA-256 of each tensor's
bytes (row-major, little-endian, rows in the order of the ids), in pieces of up to 64 MiB so that
several can be written and checked at a time, and the tensor that each came from, and the SHA-256 of
the target's index. It also keeps data without a place in a state dict: scalars, notes, what was
dropped; and its own SHA-256.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass, field
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Set

from migrate.manifest.naming import ids_of
from migrate.manifest.transforms import CAST, COPY, Loss, named
from migrate.manifest.typed import build
from semisync.common import json_text
from semisync.common.errors import BadInput
from semisync.storage.files import read_whole, size_of
from semisync.storage.folders import joined
from semisync.storage.remote import Unreachable

SCHEMA = "semisync.manifest/2"
FILE = "manifest.json"
_DIGEST = "sha256"  # of all the rest
_VARIABLES = ("table", "table slot", "dense", "dense slot", "scalar")  # roles


@dataclass
class Piece:
    """Rows first..first+rows of a tensor of the target, and the SHA-256 of their bytes."""

    first: int
    rows: int
    sha256: str


@dataclass
class Written:
    """One tensor of the target.

    Attributes:
        fqn: its name there.
        source: its name in the checkpoint.
        role: "table", "table slot", "dense", "dense slot", "scalar" or "step"; of a hash table
            "hashed", "hashed slot", "hashed ids", "hashed state", and with "file" for "hashed"
            where it is a file of its own, fqn its path.
        shape: sizes.
        dtype: torch's name of the data type.
        transform: name of one of migrate.manifest.transforms.
        partition_strategy: "mod" where the rows were dealt out from the partitions, else None.
        value: the number that was written instead of the source's own, else None.
        pieces: its rows, in order, with their hashes.
        loss: by a cast or a quantization, else None.
        slices: name under which the source is stored -> [start, sizes] of each of its slices there;
            empty where it is stored whole, under its own name.
    """

    fqn: str
    source: str
    role: str
    shape: List[int]
    dtype: str
    transform: str = "copy"
    partition_strategy: Optional[str] = None
    value: Optional[float] = None
    pieces: List[Piece] = field(default_factory=list)
    loss: Optional[Loss] = None
    slices: Dict[str, List[List[List[int]]]] = field(default_factory=dict)

    @property
    def has_values(self) -> bool:
        """Whether it has the source's own values, possibly in another type."""
        return self.transform in (COPY.name, CAST.name)


@dataclass
class Renamed:
    """The name that model.py has for a tensor of the target.

    Attributes:
        name: in its state dict, or a slot's, below `optim.state.`.
        fqn: of the tensor that it is.
        rows: the first and the one after the last; None: all.
        axes: the target's axes in the module's order; None: unchanged.
    """

    name: str
    fqn: str
    rows: Optional[List[int]] = None
    axes: Optional[List[int]] = None

    @property
    def as_written(self) -> bool:
        """Whether the module keeps the tensor, or its first rows, as it stands there."""
        return self.axes is None and (self.rows is None or self.rows[0] == 0)

    def of(self, value: Any) -> Any:
        """The tensor as the module keeps it, made from its whole `value` in the target."""
        if self.rows is not None:
            value = value[slice(*self.rows)]
        return value if self.axes is None else value.permute(self.axes)


@dataclass
class Ids:
    """How a hash table's ids find their rows in the target.

    Attributes:
        mode: one of migrate.manifest.id_modes.MODES.
        table, kind: its name in the checkpoint and its format.
        count: ids that have a row.
        slots: name of a slot in torch -> in the source.
        fill: as in the plan.
        duplicates: rows that lost against a newer one of the same id.
        buckets: mpzch: total_num_buckets.
        max_probe: the least max_probe for the module.
        without: slot in torch -> number of ids without such a state in the source.
        columns: fqn -> its content of the source: "ids", "values", "freqs", "versions", or
            "slot " and its name in torch; several stand side by side.
        tensors: names of the checkpoint's tensors that the table is made from.
    """

    mode: str
    table: str
    kind: str
    count: int
    slots: Dict[str, str] = field(default_factory=dict)
    fill: Dict[str, float] = field(default_factory=dict)
    duplicates: int = 0
    buckets: int = 0
    max_probe: int = 0
    without: Dict[str, int] = field(default_factory=dict)
    columns: Dict[str, List[str]] = field(default_factory=dict)
    tensors: List[str] = field(default_factory=list)


class RowsById(NamedTuple):
    """A tensor by raw id: the part `of` a hash table.

    Attributes:
        of: "ids", "values", or the slot's name in the source.
        ids: how many there are; `written` may have a row after theirs, for those that the table
            lacks.
    """

    table: str
    of: str
    written: Written
    ids: int

    @property
    def variable(self) -> Optional[str]:
        """The model's variable that has this tensor; None for a slot."""
        return {"ids": ids_of(self.table), "values": self.table}.get(self.of)


@dataclass
class TableSummary:
    """An embedding table of the target.

    Attributes:
        dtype: torch's name of it, "int8" for quantized rows.
        optimizer: TensorFlow's name of the one whose slots are carried over.
        hyperparameters, row_wise, features, pooling, weighted, static, placement: as in
            migrate.planning.plan.Table.
        trained_bytes: size of the weights and slots of a static table where it is trained, in
            the checkpoint's types, else None.
        ids: of a hash table, else None.
    """

    name: str
    fqn: str
    rows: int
    dim: int
    dtype: str
    optimizer: Optional[str]
    hyperparameters: Dict[str, float] = field(default_factory=dict)
    row_wise: bool = False
    features: List[str] = field(default_factory=list)
    pooling: Optional[str] = None
    weighted: bool = False
    static: Optional[str] = None
    placement: Optional[str] = None
    trained_bytes: Optional[int] = None
    ids: Optional[Ids] = None


@dataclass
class Manifest:
    """The contents of a converted directory, and the source of each part.

    Attributes:
        source: the checkpoint's prefix.
        target: the format.
        module: path of the EmbeddingBagCollection.
        tables: the result for each table.
        tensors: every tensor that was written.
        scalars: value of each scalar by its name in the checkpoint.
        dropped: the reason by the name of a tensor that was left out.
        notes: for the reader.
        meta: the plan's MetaGraph.
        newer: prefix of the increment that was laid over the source.
        renamed: model.py's names of the tensors of a DCP, where there is one.
        index_sha256: of the target's index (`migrate.targets.INDEXES`), in hexadecimal; None in
            manifests of earlier versions.

    Examples:
        >>> manifest = migrate.read_manifest("converted")
        >>> manifest.target, sorted(manifest.scalars)
        ('dcp', ['global_step'])
    """

    source: str
    target: str
    module: str
    tables: List[TableSummary] = field(default_factory=list)
    tensors: List[Written] = field(default_factory=list)
    scalars: Dict[str, Any] = field(default_factory=dict)
    dropped: Dict[str, str] = field(default_factory=dict)
    notes: List[str] = field(default_factory=list)
    meta: Optional[str] = None
    newer: Optional[str] = None
    renamed: List[Renamed] = field(default_factory=list)
    index_sha256: Optional[str] = None

    def sources(self) -> Set[str]:
        """Names of the checkpoint's tensors that something was made from.

        Returns:
            A set.
        """
        names = {written.source for written in self.tensors}
        for table in self.tables:
            names.update(table.ids.tensors if table.ids is not None else ())
        return names

    def not_carried(self) -> List[str]:
        """The tensors that were not written, and why.

        Returns:
            A sentence per reason, with the names.
        """
        by_reason: Dict[str, List[str]] = {}
        for name, reason in sorted(self.dropped.items()):
            by_reason.setdefault(reason, []).append(name)
        return [f"{', '.join(names)}: {reason}" for reason, names in by_reason.items()]

    def variables(self) -> Iterator[Written]:
        """The written tensors that hold the values of one tensor of the checkpoint each.

        Yields:
            `Written`.
        """
        for written in self.tensors:
            if written.role in _VARIABLES and written.value is None:
                yield written

    def rows_by_id(self) -> Iterator[RowsById]:
        """The written tensors with a row per id of a hash table, by ascending id, and the ids.

        Yields:
            `RowsById`.
        """
        by_fqn = {one.fqn: one for one in self.tensors}
        for table in self.tables:
            if table.ids is None or table.ids.mode != "rows":
                continue
            # With mode rows each tensor has one column of the table.
            for fqn, (column, *_) in table.ids.columns.items():
                # "ids" and "values" are no slots, and stay.
                of = table.ids.slots.get(column[len("slot ") :], column)
                yield RowsById(table.ids.table, of, by_fqn[fqn], table.ids.count)

    def to_json(self) -> str:
        """The manifest as the text of `manifest.json`.

        Returns:
            JSON.
        """
        return json.dumps(self.document(), indent=1, ensure_ascii=False) + "\n"

    def document(self) -> Dict[str, Any]:
        """The contents of `manifest.json`.

        Returns:
            A dict of plain data, with the manifest's schema and its SHA-256.
        """
        data = {"schema": SCHEMA, **asdict(self)}
        data[_DIGEST] = _digest(data)
        return data


def read_manifest(directory: str) -> Manifest:
    """The manifest of a converted checkpoint.

    Args:
        directory: that `convert` wrote.

    Returns:
        A `Manifest`.

    Raises:
        BadInput: `directory` is not a converted checkpoint, or its manifest is damaged.

    Examples:
        >>> sorted(table.name for table in migrate.read_manifest("converted").tables)
        ['cities', 'products']
    """
    path = os.path.join(directory, FILE)
    try:
        data = json_text.loads(read_whole(path))
    except Unreachable:  # a BadInput whose own sentence is the one to show
        raise
    except BadInput as error:
        raise BadInput(f"{error}; give a directory that `semisync convert` wrote") from error
    except ValueError as error:
        raise BadInput(f"{path} is not JSON: {error}") from error
    if not isinstance(data, dict) or data.pop("schema", None) != SCHEMA:
        raise BadInput(f"{path} is not a manifest of schema {SCHEMA}; convert the checkpoint again")
    # Not compared here: an edited manifest is read too, and `is_intact` tells.
    data.pop(_DIGEST, None)
    manifest = build(Manifest, data, path)
    for written in manifest.tensors:
        named(written.transform, path)
    return manifest


def is_converted(path: str) -> bool:
    """Whether a conversion's manifest stands in `path`, a directory or a URL."""
    return size_of(joined(path, FILE)) is not None


def is_intact(directory: str) -> bool:
    """Whether the manifest is unchanged but for white space; True if it is older than its hash."""
    data = json_text.loads(read_whole(os.path.join(directory, FILE)))
    written = data.pop(_DIGEST, None)
    return written is None or written == _digest(data)


def _digest(data: Dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()
