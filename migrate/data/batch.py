"""A batch as tensors: a KeyedJaggedTensor straight from Arrow's buffers, a dense matrix, labels."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy
import pyarrow as pa
import torch
from torchrec import KeyedJaggedTensor

from migrate.data.position import Position
from migrate.data.rows import Rows, lists_of
from migrate.data.schema import Column, of_kind

_TENSORS = ("sparse", "weighted", "numbers", "dense")


@dataclass
class Batch:
    """One rank's part of a global batch.

    A batch has `batch_size` rows; those from `rows` on are padding, without ids and with zeros,
    which a loss must leave out.

    Attributes:
        rows: how many are real.
        position: the data set's after this batch; for a trainer that fetches batches ahead,
            `data.state_dict(batch.position)`.
        sparse: the ids of all columns of kind ids.
        weighted: those of kind weighted, with weights.
        numbers: those of kind numbers, float32.
        dense: float32 [batch_size, the sum of the widths], in the order of the schema.
        labels: float32 [batch_size] by column.
        keys: Arrow arrays [rows] by column, which stay on the CPU.
        strings: the same of the columns of text.

    Examples:
        >>> from migrate.data import Column, open_data
        >>> schema = [Column("item", "ids"), Column("time", "dense"), Column("clicked", "label")]
        >>> batch = next(iter(open_data("clicks.parquet", schema, 4, last="drop")))
        >>> batch.sparse.keys(), tuple(batch.dense.shape), batch.labels["clicked"].tolist()
        (['item'], (4, 1), [1.0, 0.0, 1.0, 0.0])
    """

    rows: int
    position: Position
    sparse: Optional[KeyedJaggedTensor] = None
    weighted: Optional[KeyedJaggedTensor] = None
    numbers: Optional[KeyedJaggedTensor] = None
    dense: Optional[torch.Tensor] = None
    labels: Dict[str, torch.Tensor] = field(default_factory=dict)
    keys: Dict[str, Any] = field(default_factory=dict)
    strings: Dict[str, Any] = field(default_factory=dict)

    def to(self, device: torch.device, non_blocking: bool = False) -> Batch:
        """The batch on a device.

        Args:
            device: a torch.device.
            non_blocking: as of torch.Tensor.to.

        Returns:
            A `Batch`.
        """
        return self._with(lambda tensor: tensor.to(device=device, non_blocking=non_blocking))

    def pin_memory(self) -> Batch:
        """The batch in memory from which copies to a GPU run beside other work.

        Returns:
            A `Batch`.
        """
        return self._with(lambda tensor: tensor.pin_memory())

    def record_stream(self, stream: Any) -> None:
        """Tells CUDA's allocator that a stream uses the batch, as TorchRec's pipelines ask.

        Args:
            stream: a torch.cuda.Stream.
        """
        self._with(lambda tensor: tensor.record_stream(stream))

    def _with(self, change: Callable[[Any], Any]) -> Batch:
        changed: Dict[str, Any] = {
            one.name: change(getattr(self, one.name))
            for one in fields(self)
            if one.name in _TENSORS and getattr(self, one.name) is not None
        }
        labels = {name: change(tensor) for name, tensor in self.labels.items()}
        return replace(self, **changed, labels=labels)


def to_batch(rows: Rows, schema: Sequence[Column]) -> Batch:
    """The rows as tensors, padded to the batch size.

    Args:
        rows: of a data set, as its `convert` gets them.
        schema: the columns.

    Returns:
        A `Batch`.

    Examples:
        >>> from migrate.data import Column, open_data, to_batch
        >>> schema = [Column("clicked", "label")]
        >>> convert = lambda rows: to_batch(rows, schema)
        >>> data = open_data("clicks.parquet", schema, 4, last="drop", convert=convert)
        >>> next(iter(data)).labels["clicked"]
        tensor([1., 0., 1., 0.])
    """
    columns, size = rows.columns, rows.batch_size

    def named(*kinds: str) -> Dict[str, Any]:
        return {one.name: columns[one.name] for one in of_kind(schema, *kinds)}

    return Batch(
        rows=columns.num_rows,
        position=rows.position,
        sparse=_jagged(named("ids"), size),
        weighted=_jagged(named("weighted"), size),
        numbers=_jagged(named("numbers"), size),
        dense=_matrix(list(named("dense").values()), size),
        labels={
            name: torch.from_numpy(_padded(array.to_numpy(), size))
            for name, array in named("label").items()
        },
        keys=named("key"),
        strings=named("string", "strings"),
    )


def _jagged(columns: Dict[str, Any], size: int) -> Optional[KeyedJaggedTensor]:
    """The values of all columns, one after the other, and how many each row has, int32."""
    if not columns:
        return None
    lengths = numpy.zeros((len(columns), size), numpy.int32)
    values: List[numpy.ndarray] = []
    weights: List[numpy.ndarray] = []
    for length, array in zip(lengths, columns.values()):
        offsets, flat = lists_of(array)
        numpy.subtract(offsets[1:], offsets[:-1], out=length[: len(array)], casting="unsafe")
        if pa.types.is_struct(flat.type):
            ids, weight = flat.flatten()
            weights.append(weight.to_numpy())
            flat = ids
        values.append(flat.to_numpy())
    return KeyedJaggedTensor(
        keys=list(columns),
        values=torch.from_numpy(numpy.concatenate(values)),
        weights=torch.from_numpy(numpy.concatenate(weights)) if weights else None,
        lengths=torch.from_numpy(lengths.reshape(-1)),
        stride=size,
    )


def _matrix(columns: Sequence[Any], size: int) -> Optional[torch.Tensor]:
    if not columns:
        return None
    wide = [_width(array) for array in columns]
    matrix = numpy.zeros((size, sum(width for width, _ in wide)), numpy.float32)
    first = 0
    for width, flat in wide:
        # Rows beyond these are padding, and stay 0.
        matrix[: len(flat) // width, first : first + width] = flat.reshape(-1, width)
        first += width
    return torch.from_numpy(matrix)


def _width(array: Any) -> Tuple[int, numpy.ndarray]:
    """Values per row of a dense column, and all of them."""
    if pa.types.is_fixed_size_list(array.type):
        return array.type.list_size, array.flatten().to_numpy()
    return 1, array.to_numpy()


def _padded(values: numpy.ndarray, size: int) -> numpy.ndarray:
    out = numpy.zeros(size, values.dtype)
    out[: len(values)] = values
    return out
