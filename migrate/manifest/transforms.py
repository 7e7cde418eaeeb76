"""Transforms of values on their way: one object per transform, named as in the manifest.

    copy      bit for bit
    cast      to the data type of the target; the loss is counted (`Loss`)
    int8      to 8-bit values with a scale and a bias per row (migrate.manifest.quantization);
              counted, too
    row_mean  the mean over the columns, in float64: exact Adagrad's accumulator [rows, dim] becomes
              that of row-wise Adagrad, [rows], which is an approximation
    hours     seconds as whole hours; -1, a free row's mark, stays

bfloat16 is its bits here (`BFLOAT16`): numpy has no arithmetic for it. A cast to it rounds to the
nearest, ties to even, as torch and TensorFlow do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Sequence, Tuple

import numpy

from migrate.manifest.quantization import GPU_ROW_ALIGNMENT, HEAD, dequantized, quantized
from semisync.common.errors import BadInput
from semisync.encoding.dtypes import BFLOAT16, number_type, widened


@dataclass
class Loss:
    """The loss by a cast or a quantization.

    Attributes:
        values: how many were counted.
        largest: largest absolute difference of a value.
        squared_error: sum of the squared differences.
        squared: sum of the squared values.
        overflowed: values that the type cannot hold.
        vanished: other values that became zero.
    """

    values: int = 0
    largest: float = 0.0
    squared_error: float = 0.0
    squared: float = 0.0
    overflowed: int = 0
    vanished: int = 0

    @property
    def relative(self) -> float:
        """Root of the mean squared difference over the root of the mean square."""
        return (self.squared_error / self.squared) ** 0.5 if self.squared else 0.0

    @property
    def root_mean_square(self) -> float:
        """Root of the mean squared difference."""
        return (self.squared_error / self.values) ** 0.5 if self.values else 0.0

    def add(self, other: Loss) -> None:
        """Takes in the loss of further values."""
        self.values += other.values
        self.largest = max(self.largest, other.largest)
        self.squared_error += other.squared_error
        self.squared += other.squared
        self.overflowed += other.overflowed
        self.vanished += other.vanished


class Transform:
    """One way from rows of the source to rows of the target; this one copies them.

    name   in the manifest
    dtype  torch's name of the type that it always writes, None where the caller chooses
    lossy  whether it counts what it changes
    exact  whether whoever makes it again gets the same bits
    """

    name = "copy"
    dtype: Optional[str] = None
    lossy = False
    exact = True

    def apply(self, values: numpy.ndarray, dtype: str, loss: Loss) -> numpy.ndarray:
        """`values`, a few rows, as the target has them in `dtype`; `loss` takes in the error."""
        return values

    def shape(self, shape: Sequence[int]) -> Tuple[int, ...]:
        """The shape in the target of a tensor that has `shape` in the source."""
        return tuple(shape)

    def type_name(self, dtype: str) -> str:
        """A reader's name of the target's type."""
        return dtype

    def row_bytes(self, dim: int, dtype: str, gpu: bool = False) -> int:
        """Size of a row of `dim` values in the target; gpu: with the padding there."""
        return dim * number_type(dtype).itemsize


class _Cast(Transform):
    name = "cast"
    lossy = True

    def apply(self, values: numpy.ndarray, dtype: str, loss: Loss) -> numpy.ndarray:
        after = cast(values, dtype)
        loss.add(_loss(widened(values), widened(after)))
        return after


class _Int8(Transform):
    name = "int8"
    dtype = "uint8"
    lossy = True

    def apply(self, values: numpy.ndarray, dtype: str, loss: Loss) -> numpy.ndarray:
        wide = cast(values, "float32")
        rows = quantized(wide)
        loss.add(_loss(wide, dequantized(rows)))
        # An infinity or NaN has no 8-bit form either; `_loss` leaves them out.
        loss.overflowed += int((~numpy.isfinite(wide)).sum())
        return rows

    def shape(self, shape: Sequence[int]) -> Tuple[int, ...]:
        return (*shape[:-1], sum(shape[-1:]) + HEAD)

    def type_name(self, dtype: str) -> str:
        return "int8"

    def row_bytes(self, dim: int, dtype: str, gpu: bool = False) -> int:
        row = HEAD + dim
        return row + -row % GPU_ROW_ALIGNMENT if gpu else row


class _RowMean(Transform):
    name = "row_mean"
    dtype = "float32"
    exact = False  # the order of the sum is not defined

    def apply(self, values: numpy.ndarray, dtype: str, loss: Loss) -> numpy.ndarray:
        exact = widened(values).astype(numpy.float64)
        return exact.reshape(len(exact), -1).mean(axis=1).astype(number_type(dtype))

    def shape(self, shape: Sequence[int]) -> Tuple[int, ...]:
        return tuple(shape[:1])


class _Hours(Transform):
    name = "hours"
    dtype = "int32"

    def apply(self, values: numpy.ndarray, dtype: str, loss: Loss) -> numpy.ndarray:
        # numpy's // rounds down, so that -1 stays -1.
        return (values // 3600).astype(number_type(dtype))


COPY, CAST, INT8, ROW_MEAN, HOURS = Transform(), _Cast(), _Int8(), _RowMean(), _Hours()
_BY_NAME = {transform.name: transform for transform in (COPY, CAST, INT8, ROW_MEAN, HOURS)}


def named(name: str, where: str = "the manifest") -> Transform:
    """The transform that `where`, a manifest, calls `name`; raises BadInput unless there is one."""
    if name not in _BY_NAME:
        raise BadInput(f"{where}: transform {name!r}, expected one of {', '.join(_BY_NAME)}")
    return _BY_NAME[name]


def to_type(dtype: str, target: str) -> Transform:
    """The transform by which rows of `dtype` become `target`, "int8" for quantized rows."""
    if target == "int8":
        return INT8
    return COPY if dtype == target else CAST


def cast(values: numpy.ndarray, dtype: str) -> numpy.ndarray:
    """`values` as data type `dtype`, rounded to the nearest."""
    wide = widened(values)
    if dtype != "bfloat16":
        with numpy.errstate(over="ignore"):  # counted by the caller
            return wide.astype(number_type(dtype))
    bits = wide.astype(numpy.float32).view(numpy.uint32)
    # Half a unit of the last bit that stays, less one where that bit is 0: ties go to even.
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(numpy.uint16)
    rounded[numpy.isnan(wide)] = 0x7FC0  # adding to a NaN's bits could make it an infinity
    return rounded.view(BFLOAT16)


def filler(value: float, dtype: numpy.dtype) -> numpy.ndarray:
    """`value` as one number of `dtype`, which may be bfloat16; rounded to the nearest."""
    if dtype != BFLOAT16:
        return numpy.array(value, dtype)
    (bits,) = cast(numpy.array([value], numpy.float32), "bfloat16")
    return numpy.array(bits, BFLOAT16)


def _loss(before: numpy.ndarray, after: numpy.ndarray) -> Loss:
    kept = numpy.isfinite(before) & numpy.isfinite(after)
    exact = numpy.where(kept, before, 0).astype(numpy.float64)
    written = numpy.where(kept, after, 0).astype(numpy.float64)
    error = numpy.abs(exact - written)
    return Loss(
        values=before.size,
        largest=float(error.max(initial=0.0)),
        squared_error=float(numpy.square(error).sum()),
        squared=float(numpy.square(exact).sum()),
        overflowed=int((numpy.isfinite(before) & ~numpy.isfinite(after)).sum()),
        vanished=int(((before != 0) & (after == 0)).sum()),
    )
