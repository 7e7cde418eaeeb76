"""What happens to values on their way: nothing, a cast, 8 bits, or the mean of each row.

    copy        bit for bit
    cast        to the data type of the target; what that costs is counted (`Loss`)
    int8        to 8-bit numbers with a scale and a bias a row (migrate.manifest.quantization);
    counted too row_mean    the mean over the columns, in float64: exact Adagrad's accumulator
    [rows, dim]
                becomes that of row-wise Adagrad, [rows], which is an approximation
    hours       seconds as whole hours; -1 stays

bfloat16 is its bits here (`BFLOAT16`): numpy has no arithmetic for it. A cast to it rounds to the
nearest, ties to even, as torch and TensorFlow do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy

from migrate.encoding.dtypes import BFLOAT16, number_type
from migrate.manifest.quantization import dequantized, quantized

LOSSY = ("cast", "int8")


@dataclass
class Loss:
    """What a cast or a quantization changed.

    values         how many were counted
    largest        largest absolute difference of a value
    squared_error  sum of the squared differences; squared: sum of the squared values
    overflowed     values that the type cannot hold; vanished: other values that became zero
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


def apply(transform: str, values: numpy.ndarray, dtype: str, loss: Loss) -> numpy.ndarray:
    """`values`, a few rows, as the target has them; `loss` takes in what a cast cost."""
    if transform == "copy":
        return values
    if transform == "hours":
        return (values // 3600).astype(number_type(dtype))
    if transform == "row_mean":
        exact = widened(values).astype(numpy.float64)
        return exact.reshape(len(exact), -1).mean(axis=1).astype(number_type(dtype))
    if transform == "int8":
        wide = cast(values, "float32")
        found = quantized(wide)
        loss.add(_loss(wide, dequantized(found)))
        loss.overflowed += int((~numpy.isfinite(wide)).sum())
        return found
    found = cast(values, dtype)
    loss.add(_loss(widened(values), widened(found)))
    return found


def cast(values: numpy.ndarray, dtype: str) -> numpy.ndarray:
    """`values` as data type `dtype`, rounded to the nearest."""
    wide = widened(values)
    if dtype != "bfloat16":
        with numpy.errstate(over="ignore"):  # counted by the caller
            return wide.astype(number_type(dtype))
    bits = wide.astype(numpy.float32).view(numpy.uint32)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(numpy.uint16)
    rounded[numpy.isnan(wide)] = 0x7FC0  # adding to a NaN's bits could make it an infinity
    return rounded.view(BFLOAT16)


def filler(value: float, dtype: numpy.dtype) -> numpy.ndarray:
    """`value` as one number of `dtype`, which may be bfloat16; rounded to the nearest."""
    if dtype != BFLOAT16:
        return numpy.array(value, dtype)
    (found,) = cast(numpy.array([value], numpy.float32), "bfloat16")
    return numpy.array(found, BFLOAT16)


def widened(values: numpy.ndarray) -> numpy.ndarray:
    """bfloat16 as float32; everything else as it is."""
    if values.dtype != BFLOAT16:
        return values
    return (values.view(numpy.uint16).astype(numpy.uint32) << 16).view(numpy.float32)


def _loss(before: numpy.ndarray, after: numpy.ndarray) -> Loss:
    kept = numpy.isfinite(before) & numpy.isfinite(after)
    exact = numpy.where(kept, before, 0).astype(numpy.float64)
    found = numpy.where(kept, after, 0).astype(numpy.float64)
    error = numpy.abs(exact - found)
    return Loss(
        values=before.size,
        largest=float(error.max(initial=0.0)),
        squared_error=float(numpy.square(error).sum()),
        squared=float(numpy.square(exact).sum()),
        overflowed=int((numpy.isfinite(before) & ~numpy.isfinite(after)).sum()),
        vanished=int(((before != 0) & (after == 0)).sum()),
    )
