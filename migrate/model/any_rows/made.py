"""Nodes that are added to a graph: constants, the number of its rows, and sizes made from it.

    AttrValue          {1 list, 3 i, 6 type, 7 shape, 8 tensor}       list is {7 shape}
    TensorProto        {1 dtype, 2 tensor_shape, 4 tensor_content}
    TensorShapeProto   {2 dim, 3 unknown_rank}                        dim is {1 size}
Source: tensorflow/core/framework/attr_value.proto, tensor.proto and tensor_shape.proto
"""

from __future__ import annotations

import itertools
from typing import Dict, List, Sequence, Tuple

import numpy as np

from migrate.graph.attributes import Shape
from migrate.graph.metagraph import Edge, Node
from migrate.model.any_rows.sizes import Dim, Rows
from semisync.encoding.dtypes import DTYPES
from semisync.encoding.wire import message_field as message
from semisync.encoding.wire import present_varint, varint_field

PREFIX = "any_rows"
_CODES = {known.name: code for code, known in DTYPES.items()}


class Made:
    """The nodes, by name.

    Args:
        rows: an input of the graph whose first dimension is the rows.
    """

    def __init__(self, rows: Edge) -> None:
        self._rows, self._numbers = rows, itertools.count()
        self._sizes: Dict[int, Edge] = {}
        self.nodes: Dict[str, Node] = {}

    def constant(self, value: np.ndarray, name: str = "") -> Edge:
        """A Const node with this value."""
        code = _CODES[value.dtype.name]
        sizes = b"".join(message(2, varint_field(1, size)) for size in value.shape)
        content = np.ascontiguousarray(value).tobytes()
        tensor = varint_field(1, code) + message(2, sizes) + message(4, content)
        attrs = {"dtype": _type(value.dtype.name), "value": message(8, tensor)}
        attrs["_output_shapes"] = shapes_attribute([value.shape])
        return self._add(name or f"{PREFIX}/const", "Const", (), attrs)

    def size(self, times: int = 1) -> Edge:
        """`times` the number of rows, a scalar int32."""
        if times not in self._sizes:
            if times == 1:
                self._sizes[1] = self._number_of_rows()
            else:
                factor = self.constant(np.array(times, np.int32))
                inputs, attrs = (self.size(), factor), {"T": _type("int32")}
                self._sizes[times] = self._add(f"{PREFIX}/size", "Mul", inputs, attrs)
        return self._sizes[times]

    def vector(self, dims: Sequence[Dim]) -> Edge:
        """Sizes as a vector int32."""
        parts = [
            self.size(dim.times)
            if isinstance(dim, Rows)
            else self.constant(np.array(dim, np.int32))
            for dim in dims
        ]
        # An attribute is a oneof: a 0 must be written too, or it is not set.
        attrs = {"T": _type("int32"), "N": present_varint(3, len(parts))}
        attrs["axis"] = present_varint(3, 0)
        return self._add(f"{PREFIX}/sizes", "Pack", tuple(parts), attrs)

    def tiled(self, one: Edge, rank: int, axis: int, dtype: str) -> Edge:
        """`one`, whose size in `axis` is 1, tiled to the number of rows."""
        counts = self.vector([Rows(1) if k == axis else 1 for k in range(rank)])
        attrs = {"T": _type(dtype), "Tmultiples": _type("int32")}
        return self._add(f"{PREFIX}/tile", "Tile", (one, counts), attrs)

    def numbers(self, dtype: str) -> Edge:
        """0, 1, 2, ..., a vector with a number for each row."""
        first, step = (self.constant(np.array(one, np.int32)) for one in (0, 1))
        inputs, attrs = (first, self.size(), step), {"Tidx": _type("int32")}
        return self._cast(self._add(f"{PREFIX}/range", "Range", inputs, attrs), dtype)

    def count(self, dtype: str) -> Edge:
        """The number of rows, a scalar."""
        return self._cast(self.size(), dtype)

    def _cast(self, edge: Edge, dtype: str) -> Edge:
        if dtype == "int32":
            return edge
        attrs = {"SrcT": _type("int32"), "DstT": _type(dtype)}
        return self._add(f"{PREFIX}/cast", "Cast", (edge,), attrs)

    def _number_of_rows(self) -> Edge:
        attrs = {"T": _type("int32"), "out_type": _type("int32")}
        shape = self._add(f"{PREFIX}/shape", "Shape", (self._rows,), attrs)
        bounds = [self.constant(np.array([one], np.int32)) for one in (0, 1, 1)]
        attrs = {"T": _type("int32"), "Index": _type("int32")}
        attrs["shrink_axis_mask"] = present_varint(3, 1)
        return self._add(f"{PREFIX}/rows", "StridedSlice", (shape, *bounds), attrs)

    def _add(self, name: str, op: str, inputs: Tuple[Edge, ...], attrs: Dict[str, bytes]) -> Edge:
        name = f"{name}_{next(self._numbers)}" if name in self.nodes else name
        self.nodes[name] = Node(name, op, inputs, attrs)
        return name, 0


def shapes_attribute(shapes: Sequence[Shape]) -> bytes:
    """An AttrValue that is a list of shapes."""
    return message(1, b"".join(message(7, _shape(shape)) for shape in shapes))


def shape_attribute(shape: Shape) -> bytes:
    """An AttrValue that is one shape."""
    return message(7, _shape(shape))


def _shape(shape: Shape) -> bytes:
    if shape is None:
        return varint_field(3, 1)
    sizes: List[int] = [-1 if size is None else size for size in shape]
    return b"".join(message(2, varint_field(1, size)) for size in sizes)


def _type(name: str) -> bytes:
    return varint_field(6, _CODES[name])
