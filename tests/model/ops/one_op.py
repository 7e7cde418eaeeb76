"""One op, or a few, in TensorFlow and as the Python that `migrate.model.ops` writes for it.

1. A program is built as a TensorFlow graph of placeholders, exported as a MetaGraph and read back.
2. Every node is written by `registry.write`, one assignment a node.
3. `check` runs both on the same arrays and compares values, types and shapes, and the gradients of
   the inputs, where there are any.
"""

import math
import os
import tempfile

import numpy
import tensorflow
import torch
from torch.nn import functional

from migrate import runtime
from migrate.graph.attributes import output_shape
from migrate.graph.metagraph import read_graph
from migrate.graph.tensors import constant_array
from migrate.model.ops.registry import write
from migrate.model.ops.types import kind_of, output_dtype
from migrate.model.ops.values import HOST, STRINGS, Call, Host, Many, Value, literal
from migrate.model.source.guard import checked_expression
from tests.support.control_flow import control_flow

tf = tensorflow.compat.v1
SAME = {"Identity", "PlaceholderWithDefault", "Snapshot"}
INITIALIZERS = "initializers"


class Program:
    """A graph of `build`, and the Python for it.

    Args:
        build: takes as many tensors as there are `inputs`, returns a tensor or a list of them.
        inputs: arrays, for their types and shapes.
        shapes: what the graph knows of the inputs: "all", "ranks", or "none".
        objects: what replaces the op of a table or a variable in Python, by its type; ops in the
            collection INITIALIZERS run first.
    """

    def __init__(self, build, inputs, shapes="all", objects=None):
        self.graph = tf.Graph()
        with self.graph.as_default():
            self.inputs = [_placeholder(array, shapes, k) for k, array in enumerate(inputs)]
            outputs = build(*self.inputs)
            outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
            self.outputs = [tf.convert_to_tensor(output) for output in outputs]
            self.session = tf.Session(config=_ONE_THREAD)
            self.session.run(tf.get_collection(INITIALIZERS))
        self.objects = objects or {}
        self._gradients = self._weights = None
        self.ops = {op.type for op in self.graph.get_operations()}
        self.lines = self.scope = None
        self._write()

    def tensorflow(self, *arrays):
        """What TensorFlow computes."""
        return self.session.run(self.outputs, dict(zip(self.inputs, arrays)))

    def torch(self, *values):
        """What the written Python computes, of torch tensors and Strings."""
        scope = {**self.scope, **{f"input_{k}": value for k, value in enumerate(values)}}
        for line in self.lines:
            exec(line, scope)
        return [eval(result, scope) for result in self.results]

    def check(self, *arrays, gradient=True, rtol=1e-5, atol=1e-6):
        """AssertionError where the two differ; gradients may differ by ten times as much."""
        values = [tensor(array) for array in arrays]
        floats = [one for one in values if getattr(one, "dtype", None) in _FLOATS]
        for value in floats if gradient else ():
            value.requires_grad_()
        found = self.torch(*values)
        feeds = dict(zip(self.inputs, arrays))
        if not gradient or not floats:
            self._compare(self.session.run(self.outputs, feeds), found, rtol, atol)
            return
        if self._gradients is None:
            self._build_gradients()
        weights = list(map(_weight, found))
        known = [(place, k) for k, place in enumerate(self._weights) if place is not None]
        feeds.update((place, weights[k].numpy()) for place, k in known)
        asked = [place for place in self._gradients if place is not None]
        expected, wanted = self.session.run([self.outputs, asked], feeds)
        self._compare(expected, found, rtol, atol)
        trained = [k for k, one in enumerate(found) if getattr(one, "requires_grad", False)]
        loss = sum((found[k] * weights[k]).sum() for k in trained)
        grads = torch.autograd.grad(loss, floats, allow_unused=True) if trained else []
        self._compare_gradients(floats, iter(wanted), grads or floats, 10 * rtol, 10 * atol)

    def _compare(self, expected, found, rtol, atol):
        for one, other in zip(expected, found):
            same(one, other, rtol, atol, self)

    def _compare_gradients(self, inputs, wanted, grads, rtol, atol):
        """None, on either side, is a gradient of zeros."""
        for value, place, other in zip(inputs, self._gradients, grads):
            zeros = torch.zeros_like(value)
            one = zeros.detach().numpy() if place is None else next(wanted)
            same(one, zeros if other is None or other is value else other, rtol, atol, self)

    def _build_gradients(self):
        with self.graph.as_default():
            floats = [one for one in self.outputs if one.dtype.is_floating]
            self._weights = [
                tf.placeholder(one.dtype) if one.dtype.is_floating else None for one in self.outputs
            ]
            sources = [one for one in self.inputs if one.dtype.is_floating]
            weights = [one for one in self._weights if one is not None]
            with control_flow(1):  # else TensorLists would stand for a TensorArray's gradient
                found = tf.gradients(floats, sources, weights) if floats and sources else []
            self._gradients = [None if one is None else tf.convert_to_tensor(one) for one in found]

    def _write(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "graph.meta")
            with self.graph.as_default():
                definition = self.graph.as_graph_def(add_shapes=True)
                # A serving export: what a node lacks has its op's default.
                tf.train.export_meta_graph(path, graph_def=definition, strip_default_attrs=True)
            graph = read_graph(path)
        values, self.lines, self.scope = (
            {},
            [],
            {
                "F": functional,
                "math": math,
                "runtime": runtime,
                "torch": torch,
            },
        )
        numbers = {tensor.op.name: k for k, tensor in enumerate(self.inputs)}
        for number, op in enumerate(_ancestors(self.outputs)):
            node = graph.nodes[op.name]
            if op.name in numbers:
                text = f"input_{numbers[op.name]}"
                values[op.name, 0] = _told(graph, node, 0, text)
            elif node.op == "Const":
                values[op.name, 0] = self._constant(
                    constant_array(graph, node), f"constant_{number}"
                )
            elif node.op in self.objects:
                self.scope[f"object_{number}"] = self.objects[node.op]
                values[op.name, 0] = Value(f"object_{number}", "object")
            elif node.op in SAME:
                values[op.name, 0] = values[node.inputs[0]]
            else:
                args = tuple(values[edge] for edge in node.inputs)
                self._assign(graph, node, write(Call(graph, node, args)), f"x{number}", values)
        self.results = [_result(values[t.op.name, t.value_index]) for t in self.outputs]

    def _constant(self, array, name):
        kind, dtype = (STRINGS, "string") if array.dtype == object else ("tensor", array.dtype.name)
        if not array.ndim:
            return Value(literal(array), kind, dtype, (), array)
        self.scope[name] = tensor(array)
        return Value(name, kind, dtype, array.shape, array)

    def _assign(self, graph, node, written, name, values):
        known = {str(one) for one in values.values()} | self.scope.keys()
        checked_expression(getattr(written, "text", written), known)
        if isinstance(written, Many):
            names = [f"{name}_{k}" for k in range(written.outputs)]
            self.lines.append(f"{', '.join(names)}, = {written.text}")
        else:
            names = [name]
            self.lines.append(f"{name} = {written.text if isinstance(written, Host) else written}")
        for number, one in enumerate(names):
            value = _told(graph, node, number, one)
            if isinstance(written, Host) or (isinstance(written, Many) and written.hosts):
                value = value._replace(kind=HOST, shape=written.shape)
            values[node.name, number] = value

    def __str__(self):
        return "\n".join(self.lines)


def _weight(result):
    """What a result is multiplied by before all are added up."""
    if not isinstance(result, torch.Tensor):
        return None
    drawn = torch.rand(result.shape, generator=torch.Generator().manual_seed(7)) + 0.5
    return drawn.to(result.dtype) if result.is_floating_point() else drawn


def same(expected, found, rtol, atol, program=""):
    """AssertionError unless a torch tensor or Strings is the array `expected`, type and all."""
    expected = numpy.asarray(expected)
    if isinstance(found, runtime.Strings):
        assert expected.shape == found.shape, program
        assert expected.tolist() == found.numpy().tolist(), program
        return
    assert isinstance(found, torch.Tensor), (found, str(program))
    assert str(found.dtype) == f"torch.{expected.dtype.name}", (
        found.dtype,
        expected.dtype,
        str(program),
    )
    assert tuple(found.shape) == expected.shape, (found.shape, expected.shape, str(program))
    numpy.testing.assert_allclose(
        found.detach().numpy(), expected, rtol=rtol, atol=atol, err_msg=str(program)
    )


def tensor(array):
    """A torch tensor, or Strings, of an array."""
    array = numpy.asarray(array)
    return runtime.Strings.of(array) if array.dtype.kind in "OSU" else torch.tensor(array)


def _placeholder(array, shapes, number):
    array = numpy.asarray(array)
    shape = {"all": array.shape, "ranks": [None] * array.ndim, "none": None}[shapes]
    dtype = tf.string if array.dtype.kind in "OSU" else tf.as_dtype(array.dtype)
    return tf.placeholder(dtype, shape, f"input_{number}")


def _told(graph, node, output, text):
    dtype = output_dtype(graph, node, output)
    return Value(text, kind_of(dtype), dtype, output_shape(graph, node, output))


def _result(value):
    return value.text if value.kind in ("object",) else value.tensor


def _ancestors(outputs):
    """The ops that `outputs` depend on, inputs first."""
    done, pending = {}, [(tensor.op, False) for tensor in reversed(outputs)]
    while pending:
        op, ready = pending.pop()
        if ready:
            done.setdefault(op.name, op)
        elif op.name not in done:
            pending.append((op, True))
            pending += [(one.op, False) for one in reversed(op.inputs)]
    return list(done.values())


_FLOATS = (torch.float16, torch.float32, torch.float64)
_ONE_THREAD = tf.ConfigProto(
    intra_op_parallelism_threads=1, inter_op_parallelism_threads=1, device_count={"GPU": 0}
)
_ONE_THREAD.graph_options.rewrite_options.disable_meta_optimizer = True
